/* Operations on the ranks of a communicator in the order of their places, through the leaders of
 * the nodes. Where a node has several ranks, its leader collects their data by means of MPI.
 * Buffers do not overlap unless a comment says otherwise. All functions return 0, or -1 with
 * *error, the same on all ranks of a node. */
#ifndef TORUSD_MPI_NODES_H
#define TORUSD_MPI_NODES_H

#include "client/mpi/communicators/communicator_record.h"
#include "client/mpi/library/reduction.h"

/* Sends block p, of send_bytes[p] bytes, to place p, and receives the block of place p, of
 * receive_bytes[p] bytes. In both buffers one block is behind the other. `same`: all blocks of
 * all ranks have the same size. */
int nodes_alltoall(struct communicator *c, const void *send, const size_t *send_bytes,
                   void *receive, const size_t *receive_bytes, bool same,
                   struct torus_error *error);

/* Sends this rank's block, of bytes[its place], to all ranks. */
int nodes_allgather(struct communicator *c, const void *block, void *receive, const size_t *bytes,
                    bool same, struct torus_error *error);

int nodes_broadcast(struct communicator *c, void *buffer, size_t bytes, uint32_t root_place,
                    struct torus_error *error);

int nodes_barrier(struct communicator *c, struct torus_error *error);

/* Combines the vectors. The result is at `receive`, which may be `send`, on the rank with place
 * `only`, or on all ranks for PLACE_ALL; other ranks have no `receive`. */
#define PLACE_ALL UINT32_MAX
int nodes_reduce(struct communicator *c, const struct vector *v, const void *send, void *receive,
                 uint32_t only, struct torus_error *error);

/* Combines vectors of the sum of counts[] elements; each rank gets the elements of its place.
 * `receive` may be `send`. */
int nodes_reduce_scatter(struct communicator *c, const struct vector *v, const void *send,
                         void *receive, const size_t *counts, struct torus_error *error);

#endif
