/* The cheapest ways from one node to all others over the channels of a damaged torus that are in
 * order. Each channel has a cost. All numbers are integers, so that every node chooses the same of
 * several equally cheap ways. */
#pragma once

#include "daemon/lib/schedule/damage.h"

#define WAYS_MOST_COST (UINT64_C(1) << 50) /* the highest cost of a channel */

struct ways {
    uint32_t nodes;
    unsigned ports;
    size_t channels;     /* including channels that do not exist */
    uint32_t *neighbour; /* by channel, node * ports + port; TORUS_NO_NODE: no link, or out of
                          * order */
    uint64_t *cost;      /* by channel; filled by the caller */
    /* Results of the last ways_find(), by node: */
    uint64_t *distance; /* cost of its way; UINT64_MAX: not reached */
    uint32_t *before;   /* the node before it on its way; TORUS_NO_NODE at the source */
    uint8_t *via;       /* the port by which the way leaves that node */
    uint32_t *order;    /* the nodes that were reached, nearest first */
    uint32_t reached;
    struct ways_entry *heap;
    uint32_t heaped;
};

/* Fills *w; the caller sets w->cost before ways_find(). Returns 0 with *w, which the caller frees
 * with ways_free(), or -1 with *e (no memory) and nothing to free. */
int ways_init(struct ways *w, const struct damage *d, struct error *e);
/* Frees what *w holds, and empties *w. */
void ways_free(struct ways *w);

/* The index of the channel that leaves a node by a port. */
static inline size_t ways_channel(const struct ways *w, uint32_t node, unsigned port)
{
    return (size_t)node * w->ports + port;
}

/* Finds the cheapest ways from `source`. Of equally cheap ways it prefers those by the ports from
 * `turn` on, cyclically. */
void ways_find(struct ways *w, uint32_t source, unsigned turn);

/* Writes the ports of the way to a node that was reached. Returns how many: at most nodes - 1. */
uint32_t ways_trace(const struct ways *w, uint32_t destination, uint8_t *port);

/* The most hops of a shortest way between two nodes that can reach each other. Overwrites the
 * costs. */
uint32_t ways_diameter(struct ways *w);
