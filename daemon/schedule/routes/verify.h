/* The verifier: walks every route of an algorithm on a torus and reports what the schedule costs
 * and whether it is valid. Used by `torusctl plan` and by the contract tests. */
#ifndef TORUSD_SCHEDULE_ROUTES_VERIFY_H
#define TORUSD_SCHEDULE_ROUTES_VERIFY_H

#include "daemon/schedule/algorithm.h"

/* Time is counted in two ways, in blocks (in segments where blocks are split):
 * - transmission: lockstep. All nodes wait for the busiest channel after each step.
 * - critical_path: a node begins a step as soon as it has taken in the messages of earlier steps
 *   that end at it, whatever the rest of the torus does. A message starts when the node at its
 *   start has begun the step and every channel on its path has carried everything of earlier steps
 *   (cut-through, no time for hops). Messages of one step that share a channel start together, and
 *   have all arrived when it has carried the sum.
 * The two differ where rings of different lengths work side by side (at2 on 8x12: 152 and 144). */
struct schedule_report {
    uint32_t startups;        /* distinct steps */
    uint64_t transmission;    /* sum over steps of the most blocks on any channel */
    uint64_t critical_path;   /* when the last node has taken in its last message */
    uint64_t hops;            /* sum over steps of the longest leg */
    uint64_t busiest;         /* most blocks on any channel, all steps together */
    double bound;             /* algorithm_bound() */
    uint32_t contended_steps; /* steps in which a channel carries, or relays, two messages */
    bool minimal;             /* every route is a shortest path */
    bool one_port_kept;       /* no step starts, or ends, more than one message at any node; */
    uint32_t crowded_step, crowded_node; /* else the first that does */
};

/* Walks all routes. Trusts the algorithm's translation period, and looks only at the routes of
 * one node of each class. Returns 0 with *r filled if every block arrives exactly once over
 * legal legs, which form a tree in an allgather; or -1 with *e, which names the first pair for
 * which that is not so, or says why the torus is not accepted, or that it would be too much work
 * (ERROR_REFUSED, see work.h). */
int schedule_verify(const struct torus *t, const struct algorithm *a, struct schedule_report *r,
                    struct error *e);

/* Whether a schedule with this report keeps to the algorithm's port model: no channel carries
 * two messages in a step; with one port no node starts, or ends, two in a step; with single hops
 * no leg is longer than one hop. */
bool schedule_keeps_ports(const struct algorithm *a, const struct schedule_report *r);

#endif
