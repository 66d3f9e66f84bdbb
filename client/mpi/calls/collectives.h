/* The operations with the arguments of MPI's functions. Each function checks its arguments. It
 * returns REASON_TAKEN after carrying the operation out, with the result of the MPI function in
 * t->result; otherwise it has done nothing, and the caller calls the function of the MPI
 * library. */
#ifndef TORUSD_MPI_COLLECTIVES_H
#define TORUSD_MPI_COLLECTIVES_H

#include <limits.h>

#include "client/mpi/communicators/communicator_record.h"
#include "client/mpi/library/operations.h"

/* An argument: a number, or an array with one number for each rank, of int or of a 64-bit type. */
struct numbers {
    int64_t each;
    const void *array; /* NULL: `each` */
    size_t width;      /* of an entry in bytes */
};

#define NUMBER(value) ((struct numbers){.each = (int64_t)(value)})
#define NUMBERS(values) ((struct numbers){.array = (values), .width = sizeof *(values)})

static inline int64_t number_at(const struct numbers *n, size_t i)
{
    if (n->array == NULL)
        return n->each;
    return n->width == sizeof(int) ? ((const int *)n->array)[i] : ((const int64_t *)n->array)[i];
}

/* The blocks in a buffer, by rank. */
struct blocks {
    const void *at;
    struct numbers counts;
    struct numbers
        displacements; /* in extents of the type; without an array: one behind the other */
    MPI_Datatype type;
    const MPI_Datatype *types; /* not NULL: one type for each rank, and displacements in bytes */
};

/* The state of a call that is being taken. */
struct taking {
    struct communicator *c;
    bool first; /* the first call on a communicator, which may have been made for this call alone */
    int result;
    bool raises;    /* the error handler is to be called with `result` */
    uint64_t bytes; /* bytes that this rank passes on, for the statistics */
};

/* `same`: every block of every rank has the same size. */
enum reason take_alltoall(struct taking *t, const struct blocks *send, const struct blocks *receive,
                          bool same);
/* `send` has one block. */
enum reason take_allgather(struct taking *t, const struct blocks *send,
                           const struct blocks *receive, bool same);
enum reason take_broadcast(struct taking *t, void *buffer, int64_t count, MPI_Datatype type,
                           int root);
enum reason take_barrier(struct taking *t);

/* ALL_RANKS as root: MPI_Allreduce. */
#define ALL_RANKS (-1)
enum reason take_reduce(struct taking *t, const void *send, void *receive, int64_t count,
                        MPI_Datatype type, MPI_Op op, int root);
enum reason take_reduce_scatter(struct taking *t, const void *send, void *receive,
                                const struct numbers *counts, MPI_Datatype type, MPI_Op op);

/* Ends the call with its result on the torus: 0, or -1 with *error. */
enum reason taking_ends(struct taking *t, int result, const struct torus_error *error);

/* Ends the call without the torus: with MPI_SUCCESS, or an error class or code of MPI for the
 * error handler. */
enum reason taking_returns(struct taking *t, int code);

/* Whether a first call is so short that it is left to MPI (REASON_FIRST). `bytes` is the same on
 * all ranks. */
bool taking_is_short(const struct taking *t, size_t bytes);

/* Ends the call because this rank has no memory for it. */
enum reason taking_lacks_memory(struct taking *t);

/* Whether a block may be an element that cannot be packed, here or at a rank that has other
 * types. All ranks know its size, and so all leave the call to MPI. */
static inline bool block_is_too_large(size_t bytes)
{
    return !ABI_LARGE_COUNTS && bytes > INT_MAX;
}

/* Whether `at` is no buffer. The caller has replaced MPI_IN_PLACE by a buffer where MPI allows it. */
static inline bool is_no_buffer(const void *at)
{
    return at == NULL || at == MPI_IN_PLACE;
}

/* Whether two areas share a byte. */
static inline bool areas_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

#endif
