/* What the files of this folder share: messages by MPI between the ranks on one node, and arithmetic. */
#pragma once

#include "client/mpi/communicators/communicator.h"

/* Send and receive a message of `bytes` between two ranks of the node. Return 0, or -1 if MPI has failed. */
int node_send(const struct communicator *c, uint32_t to, const void *at, size_t bytes);
int node_receive(const struct communicator *c, uint32_t from, void *at, size_t bytes);

/* Makes the job fail because MPI has failed between the ranks. Returns -1 with *error. */
int node_failed(struct torus_error *error);
/* Sends the leader's `result` and *error to all ranks of the node. Returns the leader's `result`: 0, or -1 with the
 * leader's *error. */
int node_share_result(const struct communicator *c, int result, struct torus_error *error);

/* Returns the second half of c->numbers. The callers in calls/ use the first half. */
size_t *node_numbers(const struct communicator *c);
/* Stores the offsets of blocks without gaps. Returns the end of the last block. */
size_t node_offsets(const size_t *bytes, size_t count, size_t *offset);
size_t node_sum(const size_t *numbers, size_t count);
/* Of numbers by place: those of the ranks on a node. */
size_t node_sum_at(const struct communicator *c, const size_t *numbers, uint32_t node);
