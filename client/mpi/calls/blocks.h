/* The blocks in a program's buffer: reading their types, and packing them. */
#ifndef TORUSD_MPI_BLOCKS_H
#define TORUSD_MPI_BLOCKS_H

#include "client/mpi/calls/collectives.h"
#include "client/mpi/calls/datatype.h"

/* Blocks with their types read. */
struct block_list {
    const struct blocks *blocks;
    struct datatype one;    /* the type of all blocks, unless each has its own: */
    struct datatype *types; /* by rank; allocated */
    bool plain;             /* all types are plain */
};

/* Reads the types of blocks. Returns 0 with *list to be freed, or -1 if a count or a type is
 * invalid. */
int blocks_read(struct block_list *list, const struct blocks *blocks, const struct communicator *c);
void blocks_free(struct block_list *list);

/* The size of a rank's block, and the address of the block. */
size_t block_bytes(const struct block_list *list, uint32_t rank);
char *block_at(const struct block_list *list, uint32_t rank);

/* Whether the MPI library can pack and unpack each block. */
bool blocks_are_packable(const struct block_list *list, const struct communicator *c);

/* Fills in the sizes of all blocks, by place. Returns their sum, or SIZE_MAX if that is too
 * large. */
size_t blocks_sizes(const struct block_list *list, const struct communicator *c, size_t *bytes);

/* Pack the blocks into bytes in the order of places, and unpack them. Return MPI_SUCCESS, or an
 * error with which the error handler has been called. */
int blocks_pack(const struct block_list *list, const struct communicator *c, char *bytes);
int blocks_unpack(const struct block_list *list, const struct communicator *c, const char *bytes);

/* Fills in the offsets of all blocks from *base, by place; for plain types only. */
void blocks_offsets(const struct block_list *list, const struct communicator *c,
                    const size_t *bytes, char **base, size_t *offsets);

#endif
