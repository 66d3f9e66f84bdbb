/* Memory of the simulator itself. Allocations of the core may be made to fail; those of the simulator never fail. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* While code of a node runs: each allocation counts it down, and the one that makes it 0 fails; at 0, all succeed.
 * NULL outside of the core. Only programs that link swarm/heap.c use it. */
extern uint64_t
    *volatile memory_countdown; /* the compiler assumes that malloc() does not read this */

/* Zeroed. Never NULL. */
void *sim_alloc(size_t size);
/* The added bytes are not zeroed. Never NULL. */
void *sim_realloc(void *old, size_t size);
/* Makes room for one more element in an array of `count`. The array grows by doubling, because sanitizers copy it
 * each time. It must not shrink, except to nothing. Never NULL. */
void *sim_grow(void *array, size_t count, size_t size);
