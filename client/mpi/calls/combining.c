#include "client/mpi/calls/combining.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#include "client/mpi/calls/choosing.h"
#include "client/mpi/calls/packing.h"
#include "client/mpi/job/job.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/library/real.h"
#include "client/mpi/nodes/node_collectives.h"

#define MOST_ELEMENTS ((size_t)1 << 30) /* that are combined at a time, because counts are int */
/* The most bytes of all vectors together that a rank receives whole. On 2x2 to 4x4 nodes with links of 50 Mbit/s, the
 * time of a second exchange equals about that of these bytes. */
#define WHOLE_BYTES ((size_t)16 << 10)

struct combined {
    struct datatype type;
    MPI_Op op;
    size_t count; /* elements of each vector */
    size_t
        slice; /* elements of a slice, of which the last ones may be missing; 0: vectors go whole */
};

/* ---- Reading --------------------------------------------------------------------------------- */

/* Returns REASON_SERVED, with *v, if MPI can combine elements of the type. Invalid arguments are left to MPI, which
 * reports them. */
static enum reason read_combined(struct combined *v, MPI_Datatype type, MPI_Op op)
{
    struct errhandlers errhandlers;
    double in[4] = {0}, out[4] = {0};
    int result;

    if (op == mpi.op_null || datatype_read(type, &v->type) != 0 || v->type.size == 0)
        return REASON_ARGUMENTS;
    errhandlers_replace(&errhandlers, mpi.null);
    result = real.Reduce_local(in, out, 0, type, op);
    errhandlers_restore(&errhandlers);
    if (result != MPI_SUCCESS)
        return REASON_ARGUMENTS;
    v->op = op;
    return datatype_is_packable(&v->type) ? REASON_SERVED : REASON_LARGE;
}

/* Returns whether a buffer for the vector is missing: types that contain addresses do not need one (MPI_BOTTOM). */
static bool is_missing(const struct combined *v, const void *at)
{
    return is_no_buffer(at) && (at == MPI_IN_PLACE || v->type.plain);
}

static size_t bytes_of(const struct combined *v, size_t count)
{
    return count * v->type.size;
}

/* Sets the number of elements, and how vectors are divided: the same on all ranks. */
static void set_count(struct combined *v, const struct communicator *c, size_t count)
{
    const bool whole = count < c->size || bytes_of(v, count) <= WHOLE_BYTES / c->size;

    v->count = count;
    v->slice = whole ? 0 : (count - 1) / c->size + 1;
}

/* Returns the elements that a vector is made up to, so that all slices are equally long. */
static size_t padded(const struct combined *v, const struct communicator *c)
{
    return v->slice > 0 ? v->slice * c->size : v->count;
}

/* Returns the elements of the slice that this rank combines. */
static size_t my_slice(const struct combined *v, const struct communicator *c)
{
    const size_t begin = v->slice * c->place_of[c->rank];

    if (begin >= v->count)
        return 0;
    return v->count - begin < v->slice ? v->count - begin : v->slice;
}

/* ---- Combining ------------------------------------------------------------------------------- */

/* Combines `count` elements: *inout = *in op *inout. Returns MPI_SUCCESS or an error of MPI. */
static int combine_two(const struct combined *v, const char *in, char *inout, size_t count)
{
    for (size_t n; count > 0; count -= n) {
        const ptrdiff_t bytes =
            (ptrdiff_t)(n = count < MOST_ELEMENTS ? count : MOST_ELEMENTS) * v->type.extent;
        const int result = real.Reduce_local(in, inout, (int)n, v->type.handle, v->op);
        if (result != MPI_SUCCESS)
            return result;
        in += bytes;
        inout += bytes;
    }
    return MPI_SUCCESS;
}

/* Blocks of equally many elements from all ranks, packed, in the order of places. */
struct gathered {
    char *blocks;
    size_t count;  /* elements that are combined */
    size_t stride; /* bytes from a block to the next one */
};

static char *block_of(const struct gathered *g, const struct communicator *c, uint32_t rank)
{
    return g->blocks + c->place_of[rank] * g->stride;
}

/* Scratch memory for elements of a type, as they are in the memory of a program. */
struct laid_out {
    char *at;     /* the address of the elements */
    void *memory; /* the caller frees it with scratch_free() */
};

/* Returns 0, or -1 if memory is short. `count` must not be 0. Aligns the elements as well as malloc() does. Types may lie
 * before their address, and extents may be negative. */
static int lay_out(const struct datatype *type, size_t count, struct laid_out *room)
{
    const ptrdiff_t last = (ptrdiff_t)(count - 1) * type->extent, unit = alignof(max_align_t);
    const ptrdiff_t least = type->begin + (last < 0 ? last : 0);
    const ptrdiff_t most = type->end + (last > 0 ? last : 0);
    const ptrdiff_t begin = (least >= 0 ? least : least - unit + 1) / unit * unit;

    room->memory = scratch_alloc((size_t)(most - begin));
    if (room->memory == NULL)
        return -1;
    room->at = (char *)((uintptr_t)room->memory - (uintptr_t)begin);
    return 0;
}

/* Two vectors, laid out as the type says, because their type is not plain. */
static int combine_laid_out(const struct communicator *c, const struct combined *v,
                            const struct gathered *g, uint32_t last, bool prefixes,
                            const struct laid_out *room)
{
    char *sum = room[0].at, *next = room[1].at;
    int result = datatype_unpack(&v->type, sum, g->count, block_of(g, c, 0));

    for (uint32_t r = 1; r <= last && result == MPI_SUCCESS; r++) {
        char *const before = sum;
        result = datatype_unpack(&v->type, next, g->count, block_of(g, c, r));
        if (result == MPI_SUCCESS)
            result = combine_two(v, sum, next, g->count);
        if (result == MPI_SUCCESS && (prefixes || r == last))
            result = datatype_pack(&v->type, next, g->count, block_of(g, c, r));
        sum = next;
        next = before;
    }
    return result;
}

/* Combines the blocks of ranks 0 to `last`, in this order, into the block of rank `last`. With `prefixes`, each block
 * becomes that of its rank and all ranks before. Returns MPI_SUCCESS or an error of MPI; if memory is short, the job
 * fails. */
static int combine(const struct communicator *c, const struct combined *v, const struct gathered *g,
                   uint32_t last, bool prefixes)
{
    struct laid_out room[2] = {{.memory = NULL}, {.memory = NULL}};
    struct torus_error ignored;
    int result = MPI_SUCCESS;

    if (g->count == 0 || last == 0)
        return MPI_SUCCESS;
    if (v->type.plain) {
        for (uint32_t r = 1; r <= last && result == MPI_SUCCESS; r++)
            result = combine_two(v, block_of(g, c, r - 1), block_of(g, c, r), g->count);
        return result;
    }
    if (lay_out(&v->type, g->count, &room[0]) == 0 && lay_out(&v->type, g->count, &room[1]) == 0) {
        result = combine_laid_out(c, v, g, last, prefixes, room);
    } else {
        (void)node_lacks_memory(c, &ignored); /* the next call of the torus fails on all ranks */
        result = MPI_ERR_NO_MEM;
    }
    scratch_free(room[0].memory);
    scratch_free(room[1].memory);
    return result;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

/* Sets *packed to the packed vector at `from`, padded, which may be in new scratch memory *room. The caller frees *room.
 * Returns whether it succeeded; if not, the call has ended. */
static bool pack_vector(struct served_call *t, const struct combined *v, const void *from,
                        const void **packed, void **room)
{
    const size_t bytes = bytes_of(v, v->count), all = bytes_of(v, padded(v, t->c));

    *room = NULL;
    *packed = from;
    if (v->type.plain && all == bytes)
        return true;
    *packed = *room = scratch_alloc(all);
    if (*room == NULL) {
        (void)served_no_memory(t);
        return false;
    }
    memset((char *)*room + bytes, 0, all - bytes);
    const int code = datatype_pack(&v->type, from, v->count, *room);
    if (code == MPI_SUCCESS)
        return true;
    (void)served_code(t, code);
    scratch_free(*room);
    return false;
}

/* Returns where a result is received: in the memory of the program if it can be, and otherwise in new scratch memory
 * *room, which the caller frees. NULL: memory is short. */
static char *room_for_result(const struct communicator *c, const struct combined *v, void *receive,
                             void **room)
{
    *room = NULL;
    if (receive != NULL && v->type.plain && padded(v, c) == v->count)
        return receive;
    *room = scratch_alloc(bytes_of(v, padded(v, c)));
    return *room;
}

/* Sets all numbers, by place. */
static size_t *same_bytes(const struct communicator *c, size_t bytes)
{
    for (uint32_t place = 0; place < c->size; place++)
        c->numbers[place] = bytes;
    return c->numbers;
}

/* Sends the vectors whole: to the rank with place `only`, or with PLACE_ALL to all ranks. *g gets memory for them where
 * they are received. */
static int send_whole(struct communicator *c, const struct combined *v, const void *packed,
                      uint32_t only, struct gathered *g, struct torus_error *e)
{
    const size_t bytes = bytes_of(v, v->count);
    const bool gets = only == PLACE_ALL || only == c->place_of[c->rank];

    *g = (struct gathered){gets ? scratch_alloc(bytes * c->size) : NULL, v->count, bytes};
    if (gets && g->blocks == NULL)
        return node_lacks_memory(c, e);
    if (only == PLACE_ALL)
        return nodes_allgather(c, packed, g->blocks, same_bytes(c, bytes), true, e);
    return nodes_gather(c, packed, bytes, g->blocks, NULL, true, only, e);
}

/* Sends each rank its slice. *g gets memory for those that this rank receives. */
static int send_slices(struct communicator *c, const struct combined *v, const void *packed,
                       struct gathered *g, struct torus_error *e)
{
    const size_t bytes = bytes_of(v, v->slice), *all = same_bytes(c, bytes);

    *g = (struct gathered){scratch_alloc(bytes * c->size), my_slice(v, c), bytes};
    if (g->blocks == NULL)
        return node_lacks_memory(c, e);
    return nodes_alltoall(c, packed, all, g->blocks, all, true, e);
}

/* Ends a call whose result was received `at`. `code` is what combining it has returned. */
static void served_vector(struct served_call *t, const struct combined *v, const void *at,
                          void *receive, int code)
{
    if (code == MPI_SUCCESS && at != receive)
        code = datatype_unpack(&v->type, receive, v->count, at);
    (void)served_code(t, code);
}

/* ---- Reduce and allreduce -------------------------------------------------------------------- */

/* Combines the vectors of ranks 0 to `last`. `receive` is NULL on ranks that get no result; `only` is as for send_whole(). */
static void combine_whole(struct served_call *t, const struct combined *v, const void *packed,
                          void *receive, bool gets, uint32_t only, uint32_t last)
{
    struct communicator *c = t->c;
    struct torus_error error;
    struct gathered g;
    int result = send_whole(c, v, packed, only, &g, &error);

    (void)served_result(t, result, &error);
    if (result == 0 && gets) {
        const int code = combine(c, v, &g, last, false);
        served_vector(t, v, block_of(&g, c, last), receive, code);
    }
    scratch_free(g.blocks);
}

static void reduce_slices(struct served_call *t, const struct combined *v, const void *packed,
                          void *receive, bool gets, uint32_t only)
{
    struct communicator *c = t->c;
    struct torus_error error;
    struct gathered g;
    char *all = NULL;
    void *room = NULL;
    int result = send_slices(c, v, packed, &g, &error), code = MPI_SUCCESS;

    if (result == 0) {
        const void *mine = block_of(&g, c, c->size - 1);
        code = combine(c, v, &g, c->size - 1, false);
        all = gets ? room_for_result(c, v, receive, &room) : NULL;
        if (gets && all == NULL)
            result = node_lacks_memory(c, &error);
        else if (only == PLACE_ALL)
            result = nodes_allgather(c, mine, all, same_bytes(c, g.stride), true, &error);
        else
            result = nodes_gather(c, mine, g.stride, all, NULL, true, only, &error);
    }
    (void)served_result(t, result, &error);
    if (result == 0 && gets)
        served_vector(t, v, all, receive, code);
    scratch_free(room);
    scratch_free(g.blocks);
}

enum reason combine_reduce(struct served_call *t, const void *send, void *receive, size_t count,
                           MPI_Datatype type, MPI_Op op, int root)
{
    struct communicator *c = t->c;
    const bool gets = root == ALL_RANKS || (uint32_t)root == c->rank;
    const void *from = send == MPI_IN_PLACE ? receive : send, *packed;
    const uint32_t only = root == ALL_RANKS ? PLACE_ALL : c->place_of[(uint32_t)root % c->size];
    struct combined v;
    enum reason reason = read_combined(&v, type, op);
    void *room;

    if (reason != REASON_SERVED)
        return reason;
    set_count(&v, c, count);
    t->bytes = bytes_of(&v, v.count);
    if (count == 0)
        return served_code(t, MPI_SUCCESS);
    if (is_missing(&v, from) || (gets && is_missing(&v, receive)) ||
        (ABI_ALIAS_IS_ERROR && gets && send == receive))
        return REASON_ARGUMENTS;
    t->row = t->operation == OPERATION_Reduce ? COMBINED_Reduce : COMBINED_Allreduce;
    reason = choose_way(t, t->bytes);
    if (reason != REASON_SERVED)
        return reason;
    if (!pack_vector(t, &v, from, &packed, &room))
        return REASON_SERVED;
    if (v.slice > 0)
        reduce_slices(t, &v, packed, receive, gets, only);
    else
        combine_whole(t, &v, packed, receive, gets, only, c->size - 1);
    scratch_free(room);
    return REASON_SERVED;
}

/* ---- Scan and exscan ------------------------------------------------------------------------- */

/* Moves each prefix to the next rank. */
static void shift(const struct communicator *c, const struct combined *v, const struct gathered *g)
{
    for (uint32_t r = c->size - 1; r > 0; r--)
        memcpy(block_of(g, c, r), block_of(g, c, r - 1), bytes_of(v, g->count));
}

/* `receive` is NULL at rank 0 of an exscan, which gets no result. */
static void scan_slices(struct served_call *t, const struct combined *v, const void *packed,
                        void *receive, bool gets, bool exclusive)
{
    struct communicator *c = t->c;
    struct torus_error error;
    struct gathered g;
    char *back = NULL;
    void *room = NULL;
    int result = send_slices(c, v, packed, &g, &error), code = MPI_SUCCESS;

    if (result == 0) {
        const size_t *bytes = same_bytes(c, g.stride);
        code = combine(c, v, &g, c->size - 1, true);
        if (exclusive)
            shift(c, v, &g);
        back = room_for_result(c, v, gets ? receive : NULL, &room);
        result = back != NULL ? nodes_alltoall(c, g.blocks, bytes, back, bytes, true, &error)
                              : node_lacks_memory(c, &error);
    }
    (void)served_result(t, result, &error);
    if (result == 0 && gets)
        served_vector(t, v, back, receive, code);
    scratch_free(room);
    scratch_free(g.blocks);
}

enum reason serve_scan(struct served_call *t, const void *send, void *receive, int64_t count,
                       MPI_Datatype type, MPI_Op op, bool exclusive)
{
    struct communicator *c = t->c;
    const bool gets = !exclusive || c->rank > 0;
    const void *from = send == MPI_IN_PLACE ? receive : send, *packed;
    struct combined v;
    enum reason reason = read_combined(&v, type, op);
    void *room;

    if (reason != REASON_SERVED)
        return reason;
    if (count < 0)
        return REASON_ARGUMENTS;
    set_count(&v, c, (size_t)count);
    t->bytes = bytes_of(&v, v.count);
    if (count == 0)
        return served_code(t, MPI_SUCCESS);
    if (is_missing(&v, from) || (gets && is_missing(&v, receive)) ||
        (ABI_ALIAS_IS_ERROR && send == receive))
        return REASON_ARGUMENTS;
    reason = choose_way(t, t->bytes);
    if (reason != REASON_SERVED)
        return reason;
    if (!pack_vector(t, &v, from, &packed, &room))
        return REASON_SERVED;
    if (v.slice > 0)
        scan_slices(t, &v, packed, receive, gets, exclusive);
    else
        combine_whole(t, &v, packed, receive, gets, PLACE_ALL,
                      exclusive && gets ? c->rank - 1 : c->rank);
    scratch_free(room);
    return REASON_SERVED;
}

/* ---- Reduce-scatter -------------------------------------------------------------------------- */

size_t read_counts(const struct communicator *c, const struct numbers *counts, size_t *of_place,
                   size_t *begin)
{
    size_t all = 0;

    for (uint32_t r = 0; r < c->size; r++) {
        int64_t count = number_at(counts, r);
        if (count < 0)
            return SIZE_MAX;
        begin[r] = all;
        of_place[c->place_of[r]] = (size_t)count;
        if (__builtin_add_overflow(all, (size_t)count, &all))
            return SIZE_MAX;
    }
    return all;
}

void put_in_order(const struct communicator *c, size_t size, const size_t *of_place,
                  const size_t *begin, const void *from, char *to)
{
    for (uint32_t place = 0; place < c->size; place++) {
        size_t bytes = of_place[place] * size;
        if (bytes > 0)
            memcpy(to, (const char *)from + begin[c->rank_at[place]] * size, bytes);
        to += bytes;
    }
}

/* Sends each rank its part of the vector, packed in the order of places, and combines what this rank receives. */
static void reduce_parts(struct served_call *t, const struct combined *v, const void *packed,
                         size_t *counts, void *receive)
{
    struct communicator *c = t->c;
    size_t *send_bytes = counts, *receive_bytes = counts + c->size;
    struct gathered g = {.count = counts[c->place_of[c->rank]]};
    struct combined mine = {v->type, v->op, g.count, 0};
    struct torus_error error;
    bool same = true;
    int result;

    g.stride = bytes_of(v, g.count);
    for (uint32_t place = 0; place < c->size; place++) {
        same &= counts[place] == counts[0];
        receive_bytes[place] = g.stride;
    }
    for (uint32_t place = 0; place < c->size; place++)
        send_bytes[place] = bytes_of(v, counts[place]);
    g.blocks = scratch_alloc(g.stride * c->size);
    result = g.blocks == NULL
                 ? node_lacks_memory(c, &error)
                 : nodes_alltoall(c, packed, send_bytes, g.blocks, receive_bytes, same, &error);
    (void)served_result(t, result, &error);
    if (result == 0) {
        const int code = combine(c, v, &g, c->size - 1, false);
        served_vector(t, &mine, block_of(&g, c, c->size - 1), receive, code);
    }
    scratch_free(g.blocks);
}

/* Packs the vector in the order of places, and combines the parts. */
static enum reason reduce_scatter(struct served_call *t, const struct combined *v, const void *from,
                                  size_t *of_place, const size_t *begin, void *receive)
{
    struct communicator *c = t->c;
    const size_t bytes = bytes_of(v, v->count);
    const void *packed;
    void *room, *ordered = NULL;

    if (!pack_vector(t, v, from, &packed, &room))
        return REASON_SERVED;
    if (!c->in_order)
        ordered = scratch_alloc(bytes);
    if (!c->in_order && ordered == NULL) {
        (void)served_no_memory(t);
    } else {
        if (ordered != NULL)
            put_in_order(c, v->type.size, of_place, begin, packed, ordered);
        reduce_parts(t, v, ordered != NULL ? ordered : packed, of_place, receive);
    }
    scratch_free(ordered);
    scratch_free(room);
    return REASON_SERVED;
}

enum reason combine_reduce_scatter(struct served_call *t, const void *send, void *receive,
                                   const struct numbers *counts, MPI_Datatype type, MPI_Op op)
{
    struct communicator *c = t->c;
    size_t *of_place = c->numbers, *begin = of_place + c->size;
    const void *from = send == MPI_IN_PLACE ? receive : send;
    struct combined v;
    enum reason reason = read_combined(&v, type, op);
    bool gets;

    if (reason != REASON_SERVED)
        return reason;
    v.slice = 0;
    v.count = read_counts(c, counts, of_place, begin);
    if (v.count == SIZE_MAX)
        return REASON_ARGUMENTS;
    t->bytes = bytes_of(&v, v.count);
    if (v.count == 0)
        return served_code(t, MPI_SUCCESS);
    gets = of_place[c->place_of[c->rank]] > 0;
    if (is_missing(&v, from) || (gets && is_missing(&v, receive)) ||
        (ABI_ALIAS_IS_ERROR && gets && send == receive))
        return REASON_ARGUMENTS;
    t->row = t->operation == OPERATION_Reduce_scatter ? COMBINED_Reduce_scatter
                                                      : COMBINED_Reduce_scatter_block;
    reason = choose_way(t, t->bytes);
    if (reason != REASON_SERVED)
        return reason;
    return reduce_scatter(t, &v, from, of_place, begin, receive);
}
