/* Chains of data chunks that wait, first in, first out. Each chunk is one run of bytes. */
#pragma once

#include "daemon/lib/base/slab.h"

/* Chunks shorter than this many bytes are copied, so that they do not keep the slab in which they arrived. */
#define CHUNKS_COPIED_MOST 4096u

struct chunk {
    struct extent bytes; /* without a slab: empty */
    uint32_t next;
};

struct chunks {
    struct chunk *chunk;
    uint32_t room, unused; /* entries of `chunk`; the first one not in use */
};

struct chain {
    uint32_t first, last;
};

/* Initialises *c without chunks. */
void chunks_init(struct chunks *c);
/* Drops all chunks of all chains, and frees the memory. */
void chunks_free(struct chunks *c);

/* Returns a chain without chunks. */
struct chain chain_empty(void);
/* Whether a chain has no chunks. */
bool chain_is_empty(const struct chain *chain);

/* Appends bytes to a chain; takes a reference of its own. Returns 0, or -1 if there is no memory. */
int chain_append(struct chunks *c, struct chain *chain, const struct extent *bytes);
/* Adds bytes that follow the last chunk directly, in the same slab, to that chunk. Takes no reference. Returns whether
 * they do. */
bool chain_extend(struct chunks *c, const struct chain *chain, const struct extent *bytes);
/* Returns the first chunk of a chain that is not empty; borrowed. */
const struct extent *chain_first(const struct chunks *c, const struct chain *chain);
/* Takes the first chunk out of a chain that is not empty: the caller drops the reference (chunk_drop()). */
struct extent chain_pop(struct chunks *c, struct chain *chain);
/* Drops all chunks of a chain. */
void chain_clear(struct chunks *c, struct chain *chain);

/* Makes a chunk of the next `length` bytes of a body, which has at least as many: a reference to them, or a
 * copy. The caller drops the reference. Returns 0, or -1 if there is no memory. */
int chunk_gather(const struct extents *body, struct extent_cursor *cursor, uint32_t length,
                 struct extent *out);
/* Drops the reference of a chunk. */
void chunk_drop(const struct extent *bytes);
