/* Reductions in which the ranks combine the vectors themselves, with MPI_Reduce_local(), which knows every operator and
 * type of MPI: operators of the program in all languages, MPI_MINLOC, types that torusd cannot reduce. The torus moves
 * the vectors, and each rank combines those that it receives in the order of the ranks, as MPI requires for operators
 * that are not commutative.
 *
 * Short vectors go whole to every rank that wants the result. Long vectors are divided into as many slices as there are
 * ranks. Each rank receives its slice of all vectors, and combines them; then the slices of the result are exchanged. So
 * a rank sends and combines little more than one vector, whatever the number of ranks, and all data goes by exchanges
 * that use all links of the torus alike. A chain or a tree of messages would use few links at a time, and combine one
 * vector after the other. */
#pragma once

#include "client/mpi/calls/collectives.h"

/* As serve_reduce(), which has checked count and root, and serve_reduce_scatter(), for all operators and types of MPI. */
enum reason combine_reduce(struct served_call *t, const void *send, void *receive, size_t count,
                           MPI_Datatype type, MPI_Op op, int root);
enum reason combine_reduce_scatter(struct served_call *t, const void *send, void *receive,
                                   const struct numbers *counts, MPI_Datatype type, MPI_Op op);

/* Store the number of elements of each rank, by place, and the first element of each rank, by rank. Returns the number
 * of all elements, or SIZE_MAX if a count is invalid. */
size_t read_counts(const struct communicator *c, const struct numbers *counts, size_t *of_place,
                   size_t *begin);
/* Copies a vector of elements of `size` bytes so that the elements of the ranks are in the order of places. */
void put_in_order(const struct communicator *c, size_t size, const size_t *of_place,
                  const size_t *begin, const void *from, char *to);
