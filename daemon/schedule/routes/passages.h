/* A node's passages: every channel by which a segment of a block comes to this node, leaves it, or
 * passes through, without steps. A node needs its passages to run routes hop by hop (streaming), as
 * it needs a plan to run them in steps; both are built by (class, offset).
 *
 * In an allgather a segment that comes to a node stays there, and leaves by as many ports as its
 * tree has branches there. Each of these has a passage: first the one that ends here, then those
 * that join it. A segment of the node's own block also has several passages, the first of which
 * leaves by a port, too. The destination of a passage is the node at the end of the leg; a node
 * inside a leg of several hops has a passage of its own.
 *
 * In an allgather, segment k of a block goes along tree k + rank of the source, modulo the
 * segments: so blocks that are too small to be split use all trees alike, too.
 *
 * What crosses a channel has the same order at both of its ends, by (source, destination, segment),
 * so that a piece is named by its place in that order. */
#ifndef TORUSD_SCHEDULE_ROUTES_PASSAGES_H
#define TORUSD_SCHEDULE_ROUTES_PASSAGES_H

#include "daemon/schedule/algorithm.h"

#define PASSAGE_HERE UINT8_MAX /* no port: the block is ours, or for us */

struct passage {
    uint32_t source, destination;
    uint32_t place;   /* among all that leave by `out` */
    uint16_t segment; /* of the block */
    uint16_t hop;     /* channels it has crossed when it has arrived here */
    uint16_t ahead;   /* channels it has still to cross; allgather: on the longest way */
    uint8_t in, out;  /* ports */
};

struct passages {
    uint32_t rank;
    uint32_t source; /* TORUS_NO_NODE, or the only one whose blocks there are */
    uint32_t count;
    struct passage *passage; /* those of our own blocks among them in the order of their offsets;
                              * allgather: those of our own block before all others */
    bool *joins;             /* NULL, or of an allgather, by passage: it has what comes in, or is
                              * ours, in common with the one before it */
    uint32_t own;            /* allgather: passages of our own block */
    uint32_t transit;    /* those of blocks that are neither ours nor for us; allgather: segments
                              * of others' blocks that leave from here, by however many ports */
    uint32_t most_ahead; /* of any passage of any node */
    uint32_t arrivals[TORUS_MAX_PORTS];
    uint32_t *arrival[TORUS_MAX_PORTS]; /* by port, by place at the sender: index of the passage */
    uint32_t departures[TORUS_MAX_PORTS];
};

/* Fills *p for node `rank`. Returns 0 with *p, which the caller gives to passages_free(), or -1
 * with *e set (no such node, algorithm refuses the torus, no memory) and nothing to free. */
int passages_build(struct passages *p, const struct torus *t, const struct algorithm *a,
                   uint32_t rank, struct error *e);
/* Fills *p with the passages of one source's blocks alone: of its trees, in an allgather.
 * Otherwise as passages_build(). */
int passages_build_source(struct passages *p, const struct torus *t, const struct algorithm *a,
                          uint32_t rank, uint32_t source, struct error *e);
/* The largest `transit` of any node; of one source's blocks, or with TORUS_NO_NODE of all. Returns
 * 0, or -1 with *e set. */
int passages_most_transit(const struct torus *t, const struct algorithm *a, uint32_t source,
                          uint32_t *most, struct error *e);
void passages_free(struct passages *p);

#endif
