/* A node's plan: everything that it sends, relays and receives during one round of an exchange, by
 * step. plan_build() builds it from the routes. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

#define PLAN_NO_SLOT UINT32_MAX

/* One block, or segment of a block, inside a combined message. */
struct plan_block {
    uint32_t source, destination;
    uint32_t segment;
    uint32_t slot; /* where a block in transit waits at this node, 0..slots-1. PLAN_NO_SLOT for a
                    * block that starts (sends) or ends (arrivals) here. In an allgather, a block
                    * that arrives has a slot if it is sent on as well, maybe by several ports;
                    * its destination is the node at the end of this leg */
};

/* One combined message as this node sees it. Both ends have its blocks in the same order: by
 * (source, destination, segment). */
struct plan_message {
    uint32_t step;
    uint32_t blocks; /* how many blocks it has */
    uint32_t first;  /* index of its first block in plan.block; unused if the node only relays it */
    uint16_t hops;   /* length of the leg */
    uint16_t left;   /* hops that are left when it arrives here; 0: it ends here */
    uint8_t port;    /* sends: the port out; arrivals: the port in */
};

struct plan {
    uint32_t rank;
    uint32_t steps; /* highest step of the schedule + 1, the same at every node */
    uint32_t sends; /* messages that start here, by (step, port, hops) */
    struct plan_message *send;
    uint32_t arrivals;            /* messages that arrive here, to be received or relayed */
    struct plan_message *arrival; /* by (step, port, hops, left) */
    uint32_t blocks;
    struct plan_block *block;
    uint32_t slots;        /* slots, one for each block in transit. Not reused, since a neighbour
                            * may be some steps ahead */
    uint32_t peak_transit; /* most blocks in transit here at the end of any step, in lockstep,
                            * including the arrivals of that step */
};

/* Frees what *p holds, and empties *p. An empty *p is allowed. */
void plan_free(struct plan *p);

/* The messages of a plan are in the order of their keys. */
static inline uint64_t plan_key(uint32_t step, unsigned port, uint16_t hops, uint16_t left)
{
    return (uint64_t)step << 37 | (uint64_t)port << 32 | (uint64_t)hops << 16 | left;
}

/* The arrival with this key, or NULL: finds the message of the schedule to which a peer's frame
 * belongs. O(log arrivals). */
const struct plan_message *plan_arrival(const struct plan *p, uint32_t step, uint8_t port,
                                        uint16_t hops, uint16_t left);

/* Builds a node's plan from the routes of one source of each class (routes.h): finds the node's
 * part in every route and its translations. No list of all pairs of nodes is made. */

/* Fills *p for node `rank`; the torus and the algorithm are not needed afterwards. Returns 0 with
 * *p, which the caller gives to plan_free(), or -1 with *e and nothing to free: no such node
 * (ERROR_USAGE), the algorithm refuses the torus, no memory. */
int plan_build(struct plan *p, const struct torus *t, const struct algorithm *a, uint32_t rank,
               struct error *e);

/* As plan_build(), for the blocks of one source alone; in an allgather, for its trees. */
int plan_build_source(struct plan *p, const struct torus *t, const struct algorithm *a,
                      uint32_t rank, uint32_t source, struct error *e);

/* The most blocks in transit at any node when all nodes run a schedule's steps in lockstep. Found
 * from the routes of one source of each class, without building any node's plan. */

/* Sets *peak to the largest peak_transit (plan.h) of any node. Returns 0, or -1 with *e: the
 * algorithm refuses the torus, no memory, or more blocks than can be counted (ERROR_MEMORY). */
int plan_peak_transit(const struct torus *t, const struct algorithm *a, uint32_t *peak,
                      struct error *e);
