/* Where the ranks of a communicator are on the torus: found without messages, from what all processes have told each
 * other in MPI_Init. */
#ifndef TORUSD_MPI_PLACEMENT_H
#define TORUSD_MPI_PLACEMENT_H

#include "client/mpi/communicators/communicator_record.h"

/* Tables of a communicator and its duplicates, which are the same. */
struct placement {
    _Atomic unsigned references;
    int *world; /* [rank] of the communicator: that of MPI_COMM_WORLD */
    uint32_t *rank_at;
    uint32_t *place_of;
};

/* Fills in what the communicator c->handle, which is valid, has of its ranks. The reason is REASON_TAKEN if the
 * torus can serve it. Returns 0, or -1 without memory. Errors of MPI call error handlers. */
int placement_find(struct communicator *c);

/* One more communicator has the tables; one less. */
void placement_share(struct placement *p);
void placement_release(struct placement *p);

/* Whether every rank of `inner` is a rank of `outer` as well. Without memory: no. */
bool placement_is_within(const struct communicator *inner, const struct communicator *outer);

#endif
