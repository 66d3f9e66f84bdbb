/* A node's plan: everything that it sends, relays and takes in during one round of an exchange,
 * by step. plan_build.h makes it of the routes. */
#ifndef TORUSD_SCHEDULE_PLAN_H
#define TORUSD_SCHEDULE_PLAN_H

#include "daemon/schedule/algorithm.h"

#define PLAN_NO_SLOT UINT32_MAX

/* One block (or segment of one) inside a combined message. */
struct plan_block {
    uint32_t source, destination;
    uint32_t segment;
    uint32_t slot; /* where a block in transit waits at this node: 0..slots-1. PLAN_NO_SLOT for a
                    * block that this node is the source (sends) or destination (takes) of. In an
                    * allgather the destination is the node at the end of this leg; a block that it
                    * takes has a slot if it is sent on as well, by several ports maybe. */
};

/* One combined message as this node sees it. Its blocks are in the same order at both ends: by
 * (source, destination, segment). */
struct plan_message {
    uint32_t step;
    uint32_t blocks; /* how many blocks it holds */
    uint32_t first;  /* index of its first block in plan.block; unused for relayed ones */
    uint16_t hops;   /* length of the leg */
    uint16_t left;   /* hops that are left when it has arrived here: 0 = it ends here (takes) */
    uint8_t port;    /* sends: the port out; relays and takes: the port in */
};

struct plan {
    uint32_t rank;
    uint32_t steps; /* highest step of the schedule + 1, the same at every node */
    uint32_t sends; /* messages that start here, by (step, port, hops) */
    struct plan_message *send;
    uint32_t arrivals;            /* messages that arrive here, to be taken or relayed */
    struct plan_message *arrival; /* by (step, port, hops, left) */
    uint32_t blocks;
    struct plan_block *block;
    uint32_t slots;        /* transit slots: one for each block that is sent on from here; not
                            * reused, since a neighbour may run some steps ahead */
    uint32_t peak_transit; /* most blocks in transit here at the end of any step, in lockstep,
                            * including the arrivals of that step */
};

void plan_free(struct plan *p); /* the plan may be empty */

/* The messages of a plan are in the order of their keys. */
static inline uint64_t plan_key(uint32_t step, unsigned port, uint16_t hops, uint16_t left)
{
    return (uint64_t)step << 36 | (uint64_t)port << 32 | (uint64_t)hops << 16 | left;
}

/* For bsearch(): compares a key with that of a message. */
int plan_compare_key(const void *key, const void *message);

/* The arrival with this key, or NULL: how a frame from a peer is matched with the schedule.
 * O(log arrivals). */
const struct plan_message *plan_arrival(const struct plan *p, uint32_t step, uint8_t port,
                                        uint16_t hops, uint16_t left);

/* What this node puts on `port`'s channel in one round: blocks, including those that the node
 * only relays (they leave by the port opposite to the one by which they came), and messages that
 * start here. */
void plan_port_totals(const struct plan *p, unsigned port, uint64_t *blocks, uint64_t *messages);

#endif
