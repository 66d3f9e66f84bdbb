/* A node's passages: every channel through which a segment of a block comes to the node, leaves it, or
 * passes through, without steps. A node needs its passages to run routes hop by hop (streaming), as
 * it needs a plan to run them in steps. Both are built from the routes of one source of each class
 * (routes.h).
 *
 * In an allgather, a segment that comes to a node is kept there, and leaves by as many ports as its
 * tree has branches there. The passage that ends at the node comes first in the list; after it come
 * those that join it, one for each port through which the segment leaves. A segment of the node's own
 * block has a passage for each port as well, of which all but the first join the first. The
 * destination of a passage is the node at the end of its leg. A node inside a leg of several hops
 * has a passage of its own, which joins none.
 *
 * In an allgather, segment k of node s's block uses tree (k + s) modulo the number of segments: so
 * all trees are used alike even if blocks are too small to be split.
 *
 * Both ends of a channel know the same order of the pieces that cross it, by (source, destination,
 * segment). A piece is named by its place in that order. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

#define PASSAGE_HERE UINT8_MAX /* no port: the block starts or ends here */

struct passage {
    uint32_t source, destination;
    uint32_t place;   /* place among all that leave by `out` */
    uint16_t segment; /* of the block */
    uint16_t hop;     /* channels that it has crossed when it arrives here */
    /* Channels that are left; if rates differ, the time on them, which grows with it but not in proportion; allgather:
     * channels on the longest path. */
    uint16_t ahead;
    uint8_t in, out; /* ports, or PASSAGE_HERE */
};

struct passages {
    uint32_t rank;
    uint32_t source; /* the only source whose blocks are listed; TORUS_NO_NODE: all */
    uint32_t count;
    struct passage *passage; /* own blocks in the order of their offsets; allgather: own block
                              * before all others */
    bool *joins;             /* allgather, by passage: it shares its arrival, or the own segment,
                              * with the passage before it. Otherwise NULL */
    uint32_t own;            /* allgather: passages of the own block */
    uint32_t transit;        /* passages of blocks that neither start nor end here; allgather:
                              * segments of others' blocks that leave from here, each counted
                              * once */
    uint32_t most_ahead;     /* largest `ahead` of any passage of any node */
    /* By port: how many pieces come in; by a piece's place at the sender, the index of its passage;
     * how many pieces leave. */
    uint32_t arrivals[TORUS_MAX_PORTS];
    uint32_t *arrival[TORUS_MAX_PORTS];
    uint32_t departures[TORUS_MAX_PORTS];
};

/* Fills *p for node `rank`, for the blocks of one source (in an allgather, for its trees) or, with
 * TORUS_NO_NODE, of all; the torus and the algorithm are not needed afterwards. Returns 0 with *p,
 * which the caller gives to passages_free(), or -1 with *e and nothing to free: no such node
 * (ERROR_USAGE), the algorithm refuses the torus, no memory. */
int passages_build(struct passages *p, const struct torus *t, const struct algorithm *a,
                   uint32_t rank, uint32_t source, struct error *e);
/* Sets *most to the largest `transit` of any node, for the blocks of one source or, with
 * TORUS_NO_NODE, of all. Returns 0, or -1 with *e (the algorithm refuses the torus, no memory). */
int passages_most_transit(const struct torus *t, const struct algorithm *a, uint32_t source,
                          uint32_t *most, struct error *e);
/* Frees what *p holds, and empties *p. An empty *p is allowed. */
void passages_free(struct passages *p);
