/* The operations, with the arguments of MPI's functions. Each function checks its arguments. It returns REASON_SERVED
 * if it has carried the operation out, with the result of the MPI function in t->result. Otherwise it has done
 * nothing, and the caller calls the function of the MPI library. */
#pragma once

#include <limits.h>

#include "client/mpi/communicators/communicator.h"
#include "client/mpi/library/operations.h"

/* An argument: one number for all ranks, or an array with a number for each rank, of type int or of a 64-bit type. */
struct numbers {
    int64_t each;
    const void *array; /* NULL: the number is `each` for all ranks */
    size_t width;      /* bytes of an entry of the array */
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
        displacements; /* in extents of the type; without an array: blocks without gaps */
    MPI_Datatype type;
    const MPI_Datatype *types; /* not NULL: a type for each rank, and displacements in bytes */
};

/* A call that may be served by the torus. */
struct served_call {
    struct communicator *c;
    enum mpi_operation operation;
    enum mpi_operation row; /* what its way is chosen for: `operation`, or COMBINED_X */
    bool first; /* the first call on a communicator that may have been made for this call alone */
    bool is_nonblocking;
    bool has_lane;                /* nonblocking: the communicator has a lane for the call */
    int result;                   /* the result of the MPI function */
    bool raises;                  /* the error handler must be called with `result` */
    uint64_t bytes;               /* bytes that this rank contributes */
    struct choice *choice;        /* what has chosen the way; NULL: it is fixed */
    struct choice_sample *sample; /* where the time of the call is stored; NULL: nowhere */
    uint64_t sample_begin;
};

/* `same`: all blocks of all ranks have the same size. */
enum reason serve_alltoall(struct served_call *t, const struct blocks *send,
                           const struct blocks *receive, bool same);
/* `send` has one block. */
enum reason serve_allgather(struct served_call *t, const struct blocks *send,
                            const struct blocks *receive, bool same);
/* `send` has one block; `receive`, the block of each rank, is read at the root only. `same`: all blocks have the same
 * size. */
enum reason serve_gather(struct served_call *t, const struct blocks *send,
                         const struct blocks *receive, bool same, int root);
/* The reverse: `receive` has one block, and `send` is read at the root only. */
enum reason serve_scatter(struct served_call *t, const struct blocks *send,
                          const struct blocks *receive, bool same, int root);
enum reason serve_broadcast(struct served_call *t, void *buffer, int64_t count, MPI_Datatype type,
                            int root);
enum reason serve_barrier(struct served_call *t);

/* Exchanges blocks with the neighbors of this rank: `send` has a block for each of them, or, with `one`, the same block for
 * all. `same`: all blocks of this rank have the same size. */
enum reason serve_neighbors(struct served_call *t, const struct blocks *send,
                            const struct blocks *receive, bool one, bool same);

/* With ALL_RANKS as root, this is MPI_Allreduce. */
#define ALL_RANKS (-1)
enum reason serve_reduce(struct served_call *t, const void *send, void *receive, int64_t count,
                         MPI_Datatype type, MPI_Op op, int root);
enum reason serve_reduce_scatter(struct served_call *t, const void *send, void *receive,
                                 const struct numbers *counts, MPI_Datatype type, MPI_Op op);

/* MPI_Scan, or with `exclusive` MPI_Exscan. */
enum reason serve_scan(struct served_call *t, const void *send, void *receive, int64_t count,
                       MPI_Datatype type, MPI_Op op, bool exclusive);

/* Stores the result of the torus, 0 or -1 with *error, as the result of the call. Returns REASON_SERVED. */
enum reason served_result(struct served_call *t, int result, const struct torus_error *error);

/* Stores MPI_SUCCESS or an error class or code of MPI as the result of the call. Returns REASON_SERVED. */
enum reason served_code(struct served_call *t, int code);

/* Makes the call fail on all ranks because this rank has no memory for it. Returns REASON_SERVED. */
enum reason served_no_memory(struct served_call *t);

/* Returns whether a block may be a single element that cannot be packed, here or at a rank that uses other types. All
 * ranks know the size of the block, so all of them leave the call to MPI. */
static inline bool block_is_too_large(size_t bytes)
{
    return !ABI_LARGE_COUNTS && bytes > INT_MAX;
}

/* Returns whether `at` is not a buffer. The caller has replaced MPI_IN_PLACE by a buffer where MPI allows it. */
static inline bool is_no_buffer(const void *at)
{
    return at == NULL || at == MPI_IN_PLACE;
}

/* Returns whether two areas have a byte in common. */
static inline bool areas_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}
