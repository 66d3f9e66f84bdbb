/* Blocks in a program's buffer, looked at and packed. */
#ifndef TORUSD_MPI_BLOCKS_H
#define TORUSD_MPI_BLOCKS_H

#include "client/mpi/calls/collectives.h"
#include "client/mpi/calls/datatype.h"

/* Blocks with their types read. */
struct block_list {
    const struct blocks *blocks;
    struct datatype one;    /* unless each has its own: */
    struct datatype *types; /* by rank; allocated */
    bool plain;             /* all types are */
};

/* Returns 0, or -1 if a count or a type is invalid; to be freed if it has succeeded. */
int blocks_read(struct block_list *list, const struct blocks *blocks, const struct communicator *c);
void blocks_free(struct block_list *list);

/* That of a rank. */
size_t block_bytes(const struct block_list *list, uint32_t rank);
char *block_at(const struct block_list *list, uint32_t rank);

/* Whether the MPI library can pack and unpack each of them. */
bool blocks_are_packable(const struct block_list *list, const struct communicator *c);

/* Sizes of all blocks by place. Returns their sum, or SIZE_MAX if it cannot be. */
size_t blocks_sizes(const struct block_list *list, const struct communicator *c, size_t *bytes);

/* Between the blocks and their bytes, in the order of places. Return MPI_SUCCESS or an error that the error
 * handler has been called with. */
int blocks_pack(const struct block_list *list, const struct communicator *c, char *bytes);
int blocks_unpack(const struct block_list *list, const struct communicator *c, const char *bytes);

/* For plain types: offsets of all blocks by place, from *base. */
void blocks_offsets(const struct block_list *list, const struct communicator *c,
                    const size_t *bytes, char **base, size_t *offsets);

#endif
