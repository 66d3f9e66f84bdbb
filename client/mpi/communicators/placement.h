/* The places of a communicator's ranks on the torus, found without messages from what all
 * processes have told each other in MPI_Init. */
#ifndef TORUSD_MPI_PLACEMENT_H
#define TORUSD_MPI_PLACEMENT_H

#include "client/mpi/communicators/communicator_record.h"

/* Tables that a communicator and its duplicates share. */
struct placement {
    _Atomic unsigned references;
    int *world; /* [rank] of the communicator: its rank in MPI_COMM_WORLD */
    uint32_t *rank_at;
    uint32_t *place_of;
};

/* Fills in *c from the communicator c->handle, which must be valid. The reason is REASON_TAKEN
 * if the torus can serve the communicator. Returns 0, or -1 without memory. Errors of MPI call
 * error handlers. */
int placement_find(struct communicator *c);

/* Add and remove a communicator that uses the tables; without any they are freed. */
void placement_share(struct placement *p);
void placement_release(struct placement *p);

/* Whether every rank of `inner` is also a rank of `outer`; false without memory. */
bool placement_is_within(const struct communicator *inner, const struct communicator *outer);

#endif
