/* A node's passages: every channel by which a segment of a block comes to this node, leaves it, or
 * passes through, without steps. It is what a node needs to know to run routes hop by hop
 * (streaming), as a plan is what it needs to run them in steps; built the same way, by (class,
 * offset).
 *
 * What crosses a channel has the same order at both of its ends, by (source, destination, segment),
 * so that a piece is named by its place in that order. */
#ifndef TORUSD_SCHEDULE_PASSAGES_H
#define TORUSD_SCHEDULE_PASSAGES_H

#include "daemon/schedule/algorithm.h"

#define PASSAGE_HERE UINT8_MAX /* no port: the block is ours, or for us */

struct passage {
    uint32_t source, destination;
    uint32_t place;   /* among all that leave by `out` */
    uint16_t segment; /* of the block */
    uint16_t hop;     /* how many channels it has crossed when it has come here */
    uint16_t ahead;   /* how many it has still to cross */
    uint8_t in, out;  /* ports */
};

struct passages {
    uint32_t rank;
    uint32_t count;
    struct passage *passage; /* those of our own blocks among them in the order of their offsets */
    uint32_t transit;        /* those of blocks that are neither ours nor for us */
    uint32_t most_ahead;     /* of any passage of any node */
    uint32_t arrivals[TORUS_MAX_PORTS];
    uint32_t *arrival[TORUS_MAX_PORTS]; /* by port, by place at the sender: index of the passage */
    uint32_t departures[TORUS_MAX_PORTS];
};

/* Fills *p for node `rank`; an exchange's algorithm only. Owned by the caller afterwards, freed
 * with passages_free(). Returns 0, or -1 with *e set (no such node, algorithm refuses the torus,
 * not an exchange, no memory) and nothing to free. */
int passages_build(struct passages *p, const struct torus *t, const struct algorithm *a,
                   uint32_t rank, struct error *e);
/* The most passages of blocks in transit that any node has. Returns 0, or -1 with *e set. */
int passages_most_transit(const struct torus *t, const struct algorithm *a, uint32_t *most,
                          struct error *e);
void passages_free(struct passages *p);

#endif
