/* Temporary memory for blocks that are packed or put in order. In a leader, the memory is shared with the daemon if
 * possible, so that libtorus does not copy the blocks again. Freed memory is kept for later calls. */
#pragma once

#include <stddef.h>

struct torus_group;

/* Allocates `bytes` of memory, which may be 0. The caller frees it with scratch_free(). Returns NULL only if memory
 * is short. */
void *scratch_alloc(size_t bytes);
void scratch_free(void *memory); /* NULL does nothing */

/* From now on, until scratch_forget(), new memory is shared memory of this group. */
void scratch_share(struct torus_group *group);

/* Frees all memory, because the group is about to be closed. No memory may be in use. */
void scratch_forget(void);
