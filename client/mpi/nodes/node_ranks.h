/* Messages by MPI between the ranks of a communicator on one node. Rank 0 of the node is the leader. All functions
 * return 0 or -1 unless stated otherwise. Errors of MPI do not call an error handler. */
#pragma once

#include "client/mpi/communicators/communicator_record.h"
#include "client/mpi/library/reduction.h"

/* Send and receive a message of `bytes` between two ranks of the node. Return 0, or -1 if MPI has failed. */
int node_send(const struct communicator *c, uint32_t to, const void *at, size_t bytes);
int node_receive(const struct communicator *c, uint32_t from, void *at, size_t bytes);

/* Copies `bytes` at `at` from the leader to all other ranks of the node; all of them make this call. Returns 0, or -1
 * if MPI has failed. */
int node_broadcast(const struct communicator *c, void *at, size_t bytes);

/* Combines the vectors of all ranks of the node at the leader's `receive`, which may be its `send`. Returns 0, or -1
 * if MPI has failed or memory is short. */
int node_reduce(const struct communicator *c, const struct vector *v, const void *send,
                void *receive);

/* Waits at the leader until all ranks of the node have made this call. Returns 0, or -1 if MPI has failed. */
int node_gather_all(const struct communicator *c);

/* Makes the job fail because MPI has failed between the ranks. Returns -1 with *error. */
int node_failed(struct torus_error *error);

/* Makes the job fail because this process has no memory for an operation that other processes may have begun. Returns
 * -1 with *error. */
int node_lacks_memory(const struct communicator *c, struct torus_error *error);

/* Sends the leader's `result` and *error to all ranks of the node. Returns the leader's `result`: 0, or -1 with the
 * leader's *error. */
int node_share_result(const struct communicator *c, int result, struct torus_error *error);
