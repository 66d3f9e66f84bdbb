/* Memory for blocks that are packed or put in order. In a process that leads, the memory is
 * shared with the daemon as far as possible, so that blocks are not copied again. Memory that is
 * given back is kept for the next call. */
#ifndef TORUSD_MPI_SCRATCH_H
#define TORUSD_MPI_SCRATCH_H

#include <stddef.h>

struct torus_group;

/* Memory for `bytes`, also if that is 0; the caller gives it to scratch_give(). NULL: there is
 * no memory. */
void *scratch_take(size_t bytes);
void scratch_give(void *memory); /* NULL does nothing */

/* From now on, memory is shared with the daemon through this group, whose calls do not copy it,
 * until scratch_forget(). */
void scratch_share(struct torus_group *group);

/* The group is about to be closed, and all shared memory with it. No memory may be in use. */
void scratch_forget(void);

#endif
