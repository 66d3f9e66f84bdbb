/* Finds the places of a communicator's ranks on the torus, without messages: all processes have exchanged their nodes
 * in MPI_Init. */
#pragma once

#include "client/mpi/communicators/communicator_record.h"

/* The tables of a communicator. */
struct placement {
    int *world; /* [rank]: its rank in MPI_COMM_WORLD */
    uint32_t *rank_at;
    uint32_t *place_of;
};

/* Fills in *c for the communicator c->handle, which must be valid. c->reason is REASON_SERVED if the torus can serve
 * the communicator. Returns 0, or -1 if memory is short. Errors of MPI call error handlers. */
int placement_find(struct communicator *c);

/* Frees the tables; NULL does nothing. */
void placement_free(struct placement *p);

/* Returns whether every rank of `inner` is also a rank of `outer`; false if memory is short. */
bool placement_is_within(const struct communicator *inner, const struct communicator *outer);
