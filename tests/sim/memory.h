/* Memory of the simulator itself, beside that of the core. The core's allocations may be made to
 * fail; those of the simulator never do. */
#ifndef TORUSD_TESTS_SIM_MEMORY_H
#define TORUSD_TESTS_SIM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* While code of a node runs: counts down with each allocation; the one that makes it 0 fails. At 0
 * all succeed. NULL outside of the core. Only a program that links swarm/heap.c looks at it. */
extern uint64_t *volatile memory_countdown; /* the compiler thinks that malloc() does not look */

/* Zeroed. Never NULL. */
void *sim_alloc(size_t size);
/* What is added is not zeroed. Never NULL. */
void *sim_realloc(void *old, size_t size);
/* An array of `count` elements that is to take one more: it grows by doubling, since sanitizers copy all of it
 * every time. It may only shrink to nothing. Never NULL. */
void *sim_grow(void *array, size_t count, size_t size);

#endif
