/* Operations on the ranks of a communicator in the order of their places, through the leaders of the
 * nodes. With several ranks on a node, what they pass is combined by its leader, by means of MPI among
 * them. Buffers do not overlap unless said otherwise. All return 0, or -1 with *error, the
 * same on all ranks of a node. */
#ifndef TORUSD_MPI_NODES_H
#define TORUSD_MPI_NODES_H

#include "client/mpi/communicator.h"
#include "client/mpi/datatype.h"

/* Block p, of send_bytes[p] bytes, goes to place p; that of place p, of receive_bytes[p], comes. In
 * both buffers one block is behind the other. `same`: all blocks of all ranks have the same size. */
int nodes_alltoall(struct communicator *c, const void *send, const size_t *send_bytes,
                   void *receive, const size_t *receive_bytes, bool same,
                   struct torus_error *error);

/* The block of this rank, of bytes[its place], for all. */
int nodes_allgather(struct communicator *c, const void *block, void *receive, const size_t *bytes,
                    bool same, struct torus_error *error);

int nodes_broadcast(struct communicator *c, void *buffer, size_t bytes, uint32_t root_place,
                    struct torus_error *error);

int nodes_barrier(struct communicator *c, struct torus_error *error);

/* What is reduced: `count` elements of MPI's type with MPI's op, which the torus can do. */
struct vector {
    MPI_Datatype type;
    size_t type_size;
    MPI_Op op;
    struct reduction reduction;
    size_t count;
};

/* Combines the vectors. The result is at `receive`, which may be `send`, on the rank with place `only`,
 * or on all for PLACE_ALL; others have no `receive`. */
#define PLACE_ALL UINT32_MAX
int nodes_reduce(struct communicator *c, const struct vector *v, const void *send, void *receive,
                 uint32_t only, struct torus_error *error);

/* Combines vectors of the sum of counts[] elements; each rank gets those of its place. `receive` may be
 * `send`. */
int nodes_reduce_scatter(struct communicator *c, const struct vector *v, const void *send,
                         void *receive, const size_t *counts, struct torus_error *error);

/* This process has no memory for an operation that others may have begun: ends it for them, too.
 * Returns -1 with *error. */
int nodes_lack_memory(const struct communicator *c, struct torus_error *error);

#endif
