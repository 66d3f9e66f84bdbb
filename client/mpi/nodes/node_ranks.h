/* Messages among a communicator's ranks on a node, by MPI; rank 0 of them leads. Errors of MPI are returned and call
 * no error handler. */
#ifndef TORUSD_MPI_NODE_RANKS_H
#define TORUSD_MPI_NODE_RANKS_H

#include "client/mpi/communicators/communicator_record.h"
#include "client/mpi/library/reduction.h"

/* Between the leader and another rank. Each returns 0, or -1 if MPI has failed. */
int node_send(const struct communicator *c, uint32_t to, const void *at, size_t bytes);
int node_receive(const struct communicator *c, uint32_t from, void *at, size_t bytes);

/* From the leader to all others. Long ones in pieces, which nobody but this function receives. */
int node_broadcast(const struct communicator *c, void *at, size_t bytes);

/* The combined vectors at the leader's `receive`; there, `send` may be the same. */
int node_reduce(const struct communicator *c, const struct vector *v, const void *send,
                void *receive);

/* The leader returns when all have called it. */
int node_meet(const struct communicator *c);

/* MPI has failed among them: no operation succeeds any more. Returns -1 with *error. */
int node_failed(struct torus_error *error);

/* This process has no memory for an operation that others may have begun: ends it for them, too.
 * Returns -1 with *error. */
int node_lacks_memory(const struct communicator *c, struct torus_error *error);

/* What the leader's operation has ended with, for all: returns `result`, 0 or -1 with *error, of the
 * leader. */
int node_settle(const struct communicator *c, int result, struct torus_error *error);

#endif
