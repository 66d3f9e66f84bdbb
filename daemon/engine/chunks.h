/* Chunks of data that wait, each in one run of bytes, in chains: first in, first out. */
#ifndef TORUSD_ENGINE_CHUNKS_H
#define TORUSD_ENGINE_CHUNKS_H

#include "daemon/base/slab.h"

/* Shorter ones are copied, so that they do not keep the slab that they came in. */
#define CHUNKS_COPIED_MOST 4096u

struct chunk {
    struct extent bytes; /* without a slab: of no bytes */
    uint32_t next;
};

struct chunks {
    struct chunk *chunk;
    uint32_t room, unused; /* how many there can be; the first that is not in use */
};

struct chain {
    uint32_t first, last;
};

/* No chunks. chunks_free() when all chains are empty. */
void chunks_init(struct chunks *c);
void chunks_free(struct chunks *c);

struct chain chain_empty(void);
bool chain_is_empty(const struct chain *chain);

/* At the end of a chain; takes a reference of its own. Returns 0, or -1 if there is no memory. */
int chain_append(struct chunks *c, struct chain *chain, const struct extent *bytes);
/* The first of a chain that is not empty, */
const struct extent *chain_first(const struct chunks *c, const struct chain *chain);
/* and the same taken out of it: the caller drops the reference (chunk_drop()). */
struct extent chain_pop(struct chunks *c, struct chain *chain);
void chain_clear(struct chunks *c, struct chain *chain);

/* The next `length` bytes of a body, which has so many, as a chunk: where they are, or a copy. The
 * caller drops the reference. Returns 0, or -1 if there is no memory. */
int chunk_gather(const struct extents *body, struct extent_cursor *cursor, uint32_t length,
                 struct extent *out);
void chunk_drop(const struct extent *bytes);

#endif
