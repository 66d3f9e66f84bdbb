/* The datatypes of MPI and the blocks in a buffer of the program, packed into bytes. */
#include "client/mpi/calls/packing.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/mpi/job/job.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/library/real.h"

#define PIECE ((size_t)1 << 30) /* bytes packed at a time, because sizes are int */
#define DEPTH 8                 /* levels of derived types that are examined */

/* ---- Reading --------------------------------------------------------------------------------- */

/* Returns whether a type is predefined, or consists of consecutive elements of a predefined type. Checking for gaps
 * is not enough: an indexed type may have none, and still have its bytes in another order. */
static bool is_row(MPI_Datatype handle, unsigned depth)
{
    int integers, addresses, types, combiner, integer = 0;
    MPI_Aint address;
    MPI_Datatype inner;
    bool result;

    if (real.Type_get_envelope(handle, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
        return false;
    if (combiner == MPI_COMBINER_NAMED)
        return true;
    if ((combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) || depth == DEPTH ||
        integers > 1 || addresses > 0 || types != 1 ||
        real.Type_get_contents(handle, integers, addresses, types, &integer, &address, &inner) !=
            MPI_SUCCESS)
        return false;
    result = is_row(inner, depth + 1);
    if (real.Type_get_envelope(inner, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
        combiner != MPI_COMBINER_NAMED)
        (void)real.Type_free(&inner);
    return result;
}

/* Uses the communicator of the preload, so that an error does not reach an error handler of the program. */
static bool is_type(MPI_Datatype handle)
{
    int size;

    return handle != mpi.type_null && real.Pack_size(0, handle, job.messages, &size) == MPI_SUCCESS;
}

static bool is_predefined(MPI_Datatype handle)
{
    int integers, addresses, types, combiner;

    return real.Type_get_envelope(handle, &integers, &addresses, &types, &combiner) ==
               MPI_SUCCESS &&
           combiner == MPI_COMBINER_NAMED;
}

/* The types that this thread has read last, of those that MPI defines: they never change, and most calls use them. */
static _Thread_local struct datatype recent[4];

static _Thread_local unsigned next_recent;

static bool find_recent(MPI_Datatype handle, struct datatype *type)
{
    for (unsigned i = 0; i < sizeof recent / sizeof recent[0]; i++)
        if (recent[i].extent != 0 && recent[i].handle == handle) {
            *type = recent[i];
            return true;
        }
    return false;
}

int datatype_read(MPI_Datatype handle, struct datatype *type)
{
    MPI_Count size, lower, extent, true_lower, true_extent;

    if (find_recent(handle, type))
        return 0;
    if (!is_type(handle) || real.Type_size_x(handle, &size) != MPI_SUCCESS || size < 0 ||
        real.Type_get_extent_x(handle, &lower, &extent) != MPI_SUCCESS ||
        real.Type_get_true_extent_x(handle, &true_lower, &true_extent) != MPI_SUCCESS)
        return -1;
    *type = (struct datatype){.handle = handle,
                              .size = (size_t)size,
                              .extent = (ptrdiff_t)extent,
                              .begin = (ptrdiff_t)true_lower,
                              .end = (ptrdiff_t)(true_lower + true_extent)};
    type->plain = size == extent && true_lower == 0 && true_extent == size && is_row(handle, 0);
    if (extent != 0 && is_predefined(handle))
        recent[next_recent++ % (sizeof recent / sizeof recent[0])] = *type;
    return 0;
}

bool datatype_is_predefined(MPI_Datatype handle)
{
    struct datatype ignored;

    return find_recent(handle, &ignored);
}

bool datatype_is_packable(const struct datatype *type)
{
    return type->plain || type->size <= INT_MAX || ABI_LARGE_COUNTS;
}

/* ---- Packing --------------------------------------------------------------------------------- */

/* Returns how many elements fit into a piece, but at least 1. */
static size_t piece_of(const struct datatype *type, size_t left)
{
    size_t most = type->size < PIECE ? PIECE / type->size : 1;

    return left < most ? left : most;
}

/* Packs into `size` bytes. `size` exceeds an int only for a single element, and only if MPI has a function for it. */
static int pack(const void *at, int count, MPI_Datatype type, void *bytes, size_t size)
{
    int position = 0;

#if ABI_LARGE_COUNTS
    MPI_Count large_position = 0;
    if (size > INT_MAX)
        return real.Pack_c(at, count, type, bytes, (MPI_Count)size, &large_position, job.messages);
#endif
    return real.Pack(at, count, type, bytes, (int)size, &position, job.messages);
}

static int unpack(const void *bytes, size_t size, void *at, int count, MPI_Datatype type)
{
    int position = 0;

#if ABI_LARGE_COUNTS
    MPI_Count large_position = 0;
    if (size > INT_MAX)
        return real.Unpack_c(bytes, (MPI_Count)size, &large_position, at, count, type,
                             job.messages);
#endif
    return real.Unpack(bytes, (int)size, &position, at, count, type, job.messages);
}

/* Elements in the form in which they are passed to MPI_Pack(). */
struct elements {
    uintptr_t at;
    int count;
    MPI_Datatype type;
};

/* MPICH's MPI_Pack() rejects null pointers, even if the type contains addresses (MPI_BOTTOM). To pack from a null
 * pointer, this makes all elements one element of a type that begins a byte before the pointer, and passes
 * address 1. */
static int elements_at(struct elements *e, const struct datatype *type, const void *at,
                       size_t count)
{
    const int number = (int)count;
    const MPI_Aint below = -1;
    struct errhandlers errhandlers;
    int result;

    *e = (struct elements){(uintptr_t)at, number, type->handle};
    if (at != NULL)
        return MPI_SUCCESS;
    errhandlers_replace(&errhandlers, mpi.null);
    result = real.Type_create_hindexed(1, &number, &below, type->handle, &e->type);
    if (result == MPI_SUCCESS) {
        e->at = 1;
        e->count = 1;
        result = real.Type_commit(&e->type);
    } else {
        e->type = type->handle;
    }
    errhandlers_restore(&errhandlers);
    return result;
}

static void elements_end(struct elements *e, const struct datatype *type)
{
    if (e->type != type->handle)
        (void)real.Type_free(&e->type);
}

/* Packs `count` elements at `at` into `bytes`, or unpacks them. */
static int move(const struct datatype *type, char *at, size_t count, char *bytes, bool packs)
{
    if (type->size == 0 || count == 0)
        return MPI_SUCCESS;
    if (type->plain) {
        memcpy(packs ? bytes : at, packs ? at : bytes, count * type->size);
        return MPI_SUCCESS;
    }
    for (size_t n; count > 0; count -= n) {
        struct elements e;
        int result;
        n = piece_of(type, count);
        result = elements_at(&e, type, at, n);
        if (result == MPI_SUCCESS)
            result = packs ? pack((const void *)e.at, e.count, e.type, bytes, n * type->size)
                           : unpack(bytes, n * type->size, (void *)e.at, e.count, e.type);
        elements_end(&e, type);
        if (result != MPI_SUCCESS)
            return result;
        at += (ptrdiff_t)n * type->extent;
        bytes += n * type->size;
    }
    return MPI_SUCCESS;
}

int datatype_pack(const struct datatype *type, const void *at, size_t count, void *bytes)
{
    return move(type, (char *)(uintptr_t)at, count, bytes, true); /* only read */
}

int datatype_unpack(const struct datatype *type, void *at, size_t count, const void *bytes)
{
    return move(type, at, count, (char *)(uintptr_t)bytes, false); /* only read */
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int read_types(struct block_list *list, uint32_t count)
{
    list->types = calloc(count, sizeof *list->types);
    if (list->types == NULL)
        return -1;
    list->plain = true;
    for (uint32_t i = 0; i < count; i++) {
        if (!ABI_TYPES_OF_NOTHING_COUNT && number_at(&list->blocks->counts, i) == 0)
            continue;
        if (datatype_read(list->blocks->types[i], &list->types[i]) != 0)
            return -1;
        list->plain &= list->types[i].plain;
    }
    return 0;
}

int blocks_read(struct block_list *list, const struct blocks *blocks, uint32_t count)
{
    *list = (struct block_list){.blocks = blocks};
    for (uint32_t i = 0; i < (blocks->counts.array == NULL ? 1 : count); i++)
        if (number_at(&blocks->counts, i) < 0)
            return -1;
    if (blocks->types != NULL) {
        if (read_types(list, count) == 0)
            return 0;
        free(list->types);
        return -1;
    }
    if (datatype_read(blocks->type, &list->one) != 0)
        return -1;
    list->plain = list->one.plain;
    return 0;
}

void blocks_free(struct block_list *list)
{
    free(list->types);
    list->types = NULL;
}

static const struct datatype *type_of(const struct block_list *list, uint32_t index)
{
    return list->types != NULL ? &list->types[index] : &list->one;
}

size_t block_bytes(const struct block_list *list, uint32_t index)
{
    return (size_t)number_at(&list->blocks->counts, index) * type_of(list, index)->size;
}

static ptrdiff_t displacement(const struct block_list *list, uint32_t index)
{
    const struct blocks *b = list->blocks;

    if (b->types != NULL)
        return (ptrdiff_t)number_at(&b->displacements, index);
    if (b->displacements.array == NULL)
        return (ptrdiff_t)b->counts.each * (ptrdiff_t)index * list->one.extent;
    return (ptrdiff_t)number_at(&b->displacements, index) * list->one.extent;
}

/* Computes with integers, because MPI_BOTTOM is a null pointer with addresses as displacements. */
char *block_at(const struct block_list *list, uint32_t index)
{
    return (char *)((uintptr_t)list->blocks->at + (uintptr_t)displacement(list, index));
}

bool blocks_are_missing(const struct block_list *list, size_t bytes)
{
    const struct blocks *b = list->blocks;

    return bytes > 0 && is_no_buffer(b->at) &&
           (b->at == MPI_IN_PLACE || (list->plain && b->types == NULL));
}

size_t blocks_sizes(const struct block_list *list, const struct communicator *c, size_t *bytes)
{
    size_t all = 0;

    for (uint32_t r = 0; r < c->size; r++) {
        size_t mine = block_bytes(list, r);
        bytes[c->place_of[r]] = mine;
        if (__builtin_add_overflow(all, mine, &all))
            return SIZE_MAX;
    }
    return all;
}

void blocks_offsets(const struct block_list *list, const struct communicator *c,
                    const size_t *bytes, char **base, size_t *offsets)
{
    ptrdiff_t least = PTRDIFF_MAX;

    for (uint32_t r = 0; r < c->size; r++)
        if (bytes[c->place_of[r]] > 0 && displacement(list, r) < least)
            least = displacement(list, r);
    least = least == PTRDIFF_MAX ? 0 : least;
    *base = (char *)((uintptr_t)list->blocks->at + (uintptr_t)least);
    for (uint32_t r = 0; r < c->size; r++)
        offsets[c->place_of[r]] =
            bytes[c->place_of[r]] > 0 ? (size_t)(displacement(list, r) - least) : 0;
}

bool block_is_packable(const struct block_list *list, uint32_t index)
{
    return number_at(&list->blocks->counts, index) == 0 ||
           datatype_is_packable(type_of(list, index));
}

bool blocks_are_packable(const struct block_list *list, const struct communicator *c)
{
    for (uint32_t r = 0; r < c->size; r++)
        if (!block_is_packable(list, r))
            return false;
    return true;
}

/* ---- Packing --------------------------------------------------------------------------------- */

int block_pack(const struct block_list *list, uint32_t index, void *bytes)
{
    return datatype_pack(type_of(list, index), block_at(list, index),
                         (size_t)number_at(&list->blocks->counts, index), bytes);
}

int block_unpack(const struct block_list *list, uint32_t index, const void *bytes)
{
    return datatype_unpack(type_of(list, index), block_at(list, index),
                           (size_t)number_at(&list->blocks->counts, index), bytes);
}

int blocks_pack(const struct block_list *list, const struct communicator *c, char *bytes)
{
    for (uint32_t place = 0; place < c->size; place++) {
        uint32_t r = c->rank_at[place];
        int result = block_pack(list, r, bytes);
        if (result != MPI_SUCCESS)
            return result;
        bytes += block_bytes(list, r);
    }
    return MPI_SUCCESS;
}

int blocks_unpack(const struct block_list *list, const struct communicator *c, const char *bytes)
{
    for (uint32_t place = 0; place < c->size; place++) {
        uint32_t r = c->rank_at[place];
        int result = block_unpack(list, r, bytes);
        if (result != MPI_SUCCESS)
            return result;
        bytes += block_bytes(list, r);
    }
    return MPI_SUCCESS;
}
