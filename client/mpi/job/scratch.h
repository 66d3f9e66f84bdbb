/* Memory for blocks that are packed or put in order. At the leader it is shared with the daemon, as
 * far as there is such memory, so that nothing is copied again. What is given back is kept for
 * the next call. */
#ifndef TORUSD_MPI_SCRATCH_H
#define TORUSD_MPI_SCRATCH_H

#include <stddef.h>

struct torus_group;

/* Never of 0 bytes. NULL: there is no memory. */
void *scratch_take(size_t bytes);
void scratch_give(void *memory); /* NULL does nothing */

/* From now on memory is shared with the daemon through this group, whose calls do not copy it, until
 * scratch_forget(). */
void scratch_share(struct torus_group *group);

/* The group is about to be closed, with all the memory that is shared. None is in use. */
void scratch_forget(void);

#endif
