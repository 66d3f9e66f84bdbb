/* Operations on the ranks of a communicator in the order of their places, through the leaders of the nodes. If a node
 * has several ranks, its leader collects and distributes their data by MPI. Buffers must not overlap unless a comment
 * says otherwise. All functions return 0, or -1 with *error, the same on all ranks of a node. */
#pragma once

#include "client/mpi/communicators/communicator.h"
#include "client/mpi/library/reduction.h"

/* Sends block p, of send_bytes[p] bytes, to place p, and receives the block of place p, of receive_bytes[p] bytes.
 * The blocks are in both buffers without gaps. `same`: all blocks of all ranks have the same size. */
int nodes_alltoall(struct communicator *c, const void *send, const size_t *send_bytes,
                   void *receive, const size_t *receive_bytes, bool same,
                   struct torus_error *error);
/* Sends this rank's block to all ranks. The block of place p has bytes[p] bytes; `receive` gets all blocks without
 * gaps. */
int nodes_allgather(struct communicator *c, const void *block, void *receive, const size_t *bytes,
                    bool same, struct torus_error *error);
/* Sends this rank's block of `mine` bytes to the rank with place root_place, whose `receive` gets all blocks without gaps,
 * in the order of places; its own block may be there already, with TORUS_IN_PLACE as the block, if there is one rank a
 * node. On other ranks `receive` is NULL. `same`: all blocks have the same size; otherwise bytes[p] is that of place p,
 * and is read at the root only. */
int nodes_gather(struct communicator *c, const void *block, size_t mine, void *receive,
                 const size_t *bytes, bool same, uint32_t root_place, struct torus_error *error);
/* The reverse: sends the blocks at `send` of the root to all ranks. In place, at the root: `send` is TORUS_IN_PLACE and
 * `block` has all blocks, if there is one rank a node; `mine` is then that of the root's block, which stays there. */
int nodes_scatter(struct communicator *c, const void *send, const size_t *bytes, void *block,
                  size_t mine, bool same, uint32_t root_place, struct torus_error *error);

/* Copies `bytes` at `buffer` from the rank with place root_place to all ranks. */
int nodes_broadcast(struct communicator *c, void *buffer, size_t bytes, uint32_t root_place,
                    struct torus_error *error);
/* Returns when all ranks have made this call. */
int nodes_barrier(struct communicator *c, struct torus_error *error);

/* Combines the vectors of all ranks. The rank with place `only`, or with PLACE_ALL every rank, gets the result at
 * `receive`, which may be `send`. On other ranks `receive` is NULL. */
#define PLACE_ALL UINT32_MAX

int nodes_reduce(struct communicator *c, const struct vector *v, const void *send, void *receive,
                 uint32_t only, struct torus_error *error);
/* Combines vectors with as many elements as the sum of counts[]. The rank with place p gets counts[p] elements of the
 * result, in the order of places. `receive` may be `send`. */
int nodes_reduce_scatter(struct communicator *c, const struct vector *v, const void *send,
                         void *receive, const size_t *counts, struct torus_error *error);

/* Makes the job fail because this process has no memory for an operation that other processes may have begun. Returns
 * -1 with *error. */
int node_lacks_memory(const struct communicator *c, struct torus_error *error);
