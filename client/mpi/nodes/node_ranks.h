/* Messages between the ranks of a communicator on one node, by MPI; rank 0 of the node leads.
 * Errors of MPI are returned, and do not call an error handler. */
#ifndef TORUSD_MPI_NODE_RANKS_H
#define TORUSD_MPI_NODE_RANKS_H

#include "client/mpi/communicators/communicator_record.h"
#include "client/mpi/library/reduction.h"

/* Send and receive a message between the leader and another rank. Return 0, or -1 if MPI has
 * failed. */
int node_send(const struct communicator *c, uint32_t to, const void *at, size_t bytes);
int node_receive(const struct communicator *c, uint32_t from, void *at, size_t bytes);

/* Sends from the leader to all other ranks. Long messages are sent in pieces, which only this
 * function receives. */
int node_broadcast(const struct communicator *c, void *at, size_t bytes);

/* Combines the vectors at the leader's `receive`, which may be its `send`. */
int node_reduce(const struct communicator *c, const struct vector *v, const void *send,
                void *receive);

/* Returns at the leader when all ranks have called it. */
int node_meet(const struct communicator *c);

/* MPI has failed between the ranks: no operation succeeds any more. Returns -1 with *error. */
int node_failed(struct torus_error *error);

/* This process has no memory for an operation that others may have begun: ends the operation for
 * them, too. Returns -1 with *error. */
int node_lacks_memory(const struct communicator *c, struct torus_error *error);

/* Tells all ranks the result of the leader's operation. Returns the leader's `result`: 0, or -1
 * with the leader's *error. */
int node_settle(const struct communicator *c, int result, struct torus_error *error);

#endif
