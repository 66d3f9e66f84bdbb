/* The datatypes of MPI, packed into bytes. */
#pragma once

#include "client/mpi/calls/collectives.h"
#include "client/mpi/library/abi.h"

struct datatype {
    MPI_Datatype handle;
    size_t size;      /* bytes of data */
    ptrdiff_t extent; /* from an element to the next one */
    /* Where the data of an element begins and ends, from its address. */
    ptrdiff_t begin, end;
    bool plain; /* packing changes nothing: elements have no gaps, and their bytes in order */
};

/* Reads a type. Returns 0 with *type, or -1 if the handle is not a type or its size is unknown. */
int datatype_read(MPI_Datatype handle, struct datatype *type);
/* Returns whether a type that this thread has just read is one that MPI defines. */
bool datatype_is_predefined(MPI_Datatype handle);
/* Returns whether the MPI library can pack at least a single element: before MPI 4, sizes are int. */
bool datatype_is_packable(const struct datatype *type);
/* Pack `count` elements at `at` into consecutive bytes, and unpack them. Return MPI_SUCCESS or an error of MPI. Do
 * not call an error handler. */
int datatype_pack(const struct datatype *type, const void *at, size_t count, void *bytes);
int datatype_unpack(const struct datatype *type, void *at, size_t count, const void *bytes);

/* The blocks in a buffer of the program: reads their types, and packs and unpacks them. */

/* Blocks with their types read. */
struct block_list {
    const struct blocks *blocks;
    struct datatype one;    /* the type of all blocks, if `types` is NULL */
    struct datatype *types; /* the type of each block; allocated */
    bool plain;             /* all types are plain */
};

/* Reads the types of `count` blocks: one for each rank or, in a neighborhood, for each neighbor. Returns 0 with *list,
 * which the caller frees with blocks_free(), or -1 if a count or a type is invalid or memory is short. *list refers to
 * *blocks. */
int blocks_read(struct block_list *list, const struct blocks *blocks, uint32_t count);
void blocks_free(struct block_list *list);
/* Return the size of a block in bytes, and its address. */
size_t block_bytes(const struct block_list *list, uint32_t index);
char *block_at(const struct block_list *list, uint32_t index);
/* Returns whether a buffer for blocks of `bytes` is needed and missing. A null pointer is valid (MPI_BOTTOM) if the types
 * contain addresses. */
bool blocks_are_missing(const struct block_list *list, size_t bytes);
/* Pack a block into block_bytes() bytes, and unpack it. Return MPI_SUCCESS or an error of MPI. */
int block_pack(const struct block_list *list, uint32_t index, void *bytes);
int block_unpack(const struct block_list *list, uint32_t index, const void *bytes);
/* Return whether the MPI library can pack and unpack a block, and each block. */
bool block_is_packable(const struct block_list *list, uint32_t index);
bool blocks_are_packable(const struct block_list *list, const struct communicator *c);
/* Stores the sizes of all blocks, by place. Returns their sum, or SIZE_MAX if the sum is too large. */
size_t blocks_sizes(const struct block_list *list, const struct communicator *c, size_t *bytes);
/* Pack the blocks into bytes in the order of places, and unpack them. Return MPI_SUCCESS or an error of MPI. */
int blocks_pack(const struct block_list *list, const struct communicator *c, char *bytes);
int blocks_unpack(const struct block_list *list, const struct communicator *c, const char *bytes);
/* Sets *base to the lowest address of a block, and stores the offsets of all blocks from there, by place. For plain
 * types only. */
void blocks_offsets(const struct block_list *list, const struct communicator *c,
                    const size_t *bytes, char **base, size_t *offsets);
