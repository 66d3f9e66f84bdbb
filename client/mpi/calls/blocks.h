/* The blocks in a buffer of the program: reads their types, and packs and unpacks them. */
#pragma once

#include "client/mpi/calls/collectives.h"
#include "client/mpi/calls/datatype.h"

/* Blocks with their types read. */
struct block_list {
    const struct blocks *blocks;
    struct datatype one;    /* the type of all blocks, if `types` is NULL */
    struct datatype *types; /* by rank: the type of each block; allocated */
    bool plain;             /* all types are plain */
};

/* Reads the types of blocks. Returns 0 with *list, which the caller frees with blocks_free(), or -1 if a count or a
 * type is invalid or memory is short. *list refers to *blocks. */
int blocks_read(struct block_list *list, const struct blocks *blocks, const struct communicator *c);
void blocks_free(struct block_list *list);

/* Return the size of a rank's block in bytes, and the address of the block. */
size_t block_bytes(const struct block_list *list, uint32_t rank);
char *block_at(const struct block_list *list, uint32_t rank);

/* Returns whether the MPI library can pack and unpack each block. */
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
