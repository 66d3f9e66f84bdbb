/* The verifier: walks every route of an algorithm on a torus and reports what the schedule costs
 * and whether it is valid. Used by `torusctl plan` and by the contract tests. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* Costs of a schedule. Times are in blocks, or in segments if blocks are split, on channels of the full
 * rate, and are counted in two ways:
 * - transmission: lockstep. All nodes wait for the busiest channel after each step.
 * - critical_path: no node waits for the steps of others. A message of a step starts as soon as its
 *   first node has received all messages of earlier steps that end there, and every channel on its
 *   path has carried everything of earlier steps (cut-through: hops take no time). If the algorithm
 *   limits the ports (one-port, k-port), the message also waits until its first node has sent, and
 *   its last node has received, all their messages of earlier steps. Messages of one step that
 *   share a channel start together, and have all arrived when the channel has carried their sum.
 *
 * The two differ where rings of different lengths work side by side (at2-1port on 8x12: 352 and 320). No
 * schedule that keeps to its port model has a critical path below its bound. */
struct schedule_report {
    uint32_t startups;        /* distinct steps */
    double transmission;      /* sum over steps of the most blocks on any channel */
    double critical_path;     /* when the last node has received its last message */
    uint64_t hops;            /* sum over steps of the longest leg */
    double busiest;           /* most blocks on any channel, all steps together */
    double bound;             /* algorithm_bound() */
    uint32_t contended_steps; /* steps in which two messages use one channel */
    bool minimal;             /* every route is a shortest path */
    bool one_port_kept;       /* no node starts, or ends, more than one message in a step */
    uint32_t crowded_step, crowded_node; /* otherwise the first place where that happens */
};

/* Follows the routes of one source of each class; trusts the algorithm's symmetries. Where these are
 * more than WORK_QUICK, and the algorithm has a rule for its messages, counts by that
 * (schedule_count()). Returns 0 with *r filled if every block arrives exactly once, over legs that
 * exist, in rising steps, and in an allgather the routes of a source form a tree. Returns -1 with *e otherwise: a route is wrong
 * (ERROR_DAMAGED, names the first pair), the algorithm refuses the torus, it would be too much work
 * (ERROR_REFUSED, work.h), no memory. */
int schedule_verify(const struct torus *t, const struct algorithm *a, struct schedule_report *r,
                    struct error *e);
/* The same on channels whose rates are those of `rates`: a block counts more on a slow channel, in proportion to the
 * time that it takes there. NULL: all have that. schedule_verify() uses the rates for which routes were found
 * (algorithm_damage()). The bound stays that of algorithm_bound(). */
int schedule_verify_rated(const struct torus *t, const struct algorithm *a,
                          const struct damage *rates, struct schedule_report *r, struct error *e);

/* Fills *r by the algorithm's rule for its messages (algorithm.h), without following any route: what
 * arrives where is not checked. Returns 0, or -1 with *e: there is no such rule for the torus
 * (ERROR_REFUSED), the algorithm refuses the torus, no memory. */
int schedule_count(const struct torus *t, const struct algorithm *a, struct schedule_report *r,
                   struct error *e);

/* Whether a schedule with this report keeps to the algorithm's port model. All-port: no channel
 * carries two messages in a step. One-port: also, no node starts, or ends, two messages in a step.
 * Single hops: also, no leg has more than one hop. */
bool schedule_keeps_ports(const struct algorithm *a, const struct schedule_report *r);
