#include "client/mpi/calls/blocks.h"

#include <stdlib.h>

/* ---- Reading --------------------------------------------------------------------------------- */

static int read_types(struct block_list *list, const struct communicator *c)
{
    list->types = calloc(c->size, sizeof *list->types);
    if (list->types == NULL)
        return -1;
    list->plain = true;
    for (uint32_t r = 0; r < c->size; r++) {
        if (!ABI_TYPES_OF_NOTHING_COUNT && number_at(&list->blocks->counts, r) == 0)
            continue;
        if (datatype_read(list->blocks->types[r], &list->types[r]) != 0)
            return -1;
        list->plain &= list->types[r].plain;
    }
    return 0;
}

int blocks_read(struct block_list *list, const struct blocks *blocks, const struct communicator *c)
{
    *list = (struct block_list){.blocks = blocks};
    for (uint32_t r = 0; r < (blocks->counts.array == NULL ? 1 : c->size); r++)
        if (number_at(&blocks->counts, r) < 0)
            return -1;
    if (blocks->types != NULL) {
        if (read_types(list, c) == 0)
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

static const struct datatype *type_of(const struct block_list *list, uint32_t rank)
{
    return list->types != NULL ? &list->types[rank] : &list->one;
}

size_t block_bytes(const struct block_list *list, uint32_t rank)
{
    return (size_t)number_at(&list->blocks->counts, rank) * type_of(list, rank)->size;
}

static ptrdiff_t displacement(const struct block_list *list, uint32_t rank)
{
    const struct blocks *b = list->blocks;

    if (b->types != NULL)
        return (ptrdiff_t)number_at(&b->displacements, rank);
    if (b->displacements.array == NULL)
        return (ptrdiff_t)b->counts.each * (ptrdiff_t)rank * list->one.extent;
    return (ptrdiff_t)number_at(&b->displacements, rank) * list->one.extent;
}

/* Computes with integers, because MPI_BOTTOM is a null pointer with addresses as displacements. */
char *block_at(const struct block_list *list, uint32_t rank)
{
    return (char *)((uintptr_t)list->blocks->at + (uintptr_t)displacement(list, rank));
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

bool blocks_are_packable(const struct block_list *list, const struct communicator *c)
{
    for (uint32_t r = 0; r < c->size; r++)
        if (number_at(&list->blocks->counts, r) > 0 && !datatype_is_packable(type_of(list, r)))
            return false;
    return true;
}

/* ---- Packing --------------------------------------------------------------------------------- */

int blocks_pack(const struct block_list *list, const struct communicator *c, char *bytes)
{
    for (uint32_t place = 0; place < c->size; place++) {
        uint32_t r = c->rank_at[place];
        int result = datatype_pack(type_of(list, r), block_at(list, r),
                                   (size_t)number_at(&list->blocks->counts, r), bytes);
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
        int result = datatype_unpack(type_of(list, r), block_at(list, r),
                                     (size_t)number_at(&list->blocks->counts, r), bytes);
        if (result != MPI_SUCCESS)
            return result;
        bytes += block_bytes(list, r);
    }
    return MPI_SUCCESS;
}
