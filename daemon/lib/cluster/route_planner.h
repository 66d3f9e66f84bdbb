/* Finds the ports by which a node forwards packets to every other node: all shortest paths over the links that are up
 * or, if links have different rates, those of route_weights.h. No I/O; every node computes its part from the same link
 * states.
 *
 * Nodes hear of a change at different moments. No packet may go round in a loop in between, whatever the order. Let V
 * be the link states that a node knows (those among the nodes that it reaches), and call a port "nearer in V" if it
 * leads to a node that is nearer to the destination in V: by the number of links, or by their costs, which follow from
 * V, too. Let D be half of `convergence_time`. Assumption: all nodes know a change, or what a node confirms, at most D
 * after the first node knows it. (Both are flooded within a few milliseconds a hop.)
 *
 * A link is lost:
 *   1. At once, each node keeps only those of the ports that it uses which are nearer in V. It adds none. When the
 *      kernel has these routes, the node confirms V: all nodes get a digest of V. A confirmation replaces the node's
 *      former one.
 *   2. The node uses all ports that are nearer in V: as soon as every node that it reaches, and itself, has confirmed
 *      V; or when it has heard of no change for more than `convergence_time`. (A node without torus-routed, or with an older
 *      release, never confirms.)
 * A node neither confirms nor counts confirmations if it has heard within PLANNER_CALM * `convergence_time` = 4 D before
 * V that a link has come up. Then, and in the procedure for links that come up, it withdraws its last confirmation.
 *
 * A node that does not forward (its torus-routed does not run, or cannot set what it needs) is the beginning or the end
 * of a way only: distances lead through nodes that forward. Whether a node forwards is part of the link states: a node
 * that stops forwarding counts as a loss, a node that starts again as a link that comes up. All nodes that links lead
 * to are reached in the sense of these rules, whether packets find a path there or not.
 *
 * Proof. A loop can only arise when a node adds ports. Let node a add ports at time t, in 2.
 *   By waiting: a heard of its last change at t - 2 D at the latest. All nodes knew D later what a knew then, and a
 *   knows by now what else they had heard until then. So every node b that a reaches knew exactly V at some moment, and
 *   used only ports that are nearer in V. Since then, b has added others only if it has heard of a further change and
 *   counted confirmations, as a would know a change for which b has waited. The next paragraphs exclude that.
 *   By confirmations: a knows from each node b that it reaches in V that b confirmed V. Since then, b has used other
 *   ports than those that are nearer in V only if it left V for link states W and added ports for W. It left V after
 *   t - D, as a would otherwise know its next confirmation. This is too short to add ports after waiting, so b counted
 *   confirmations of W, and it heard of losses only: a link that came up would have kept it from counting. So W is V
 *   without some links.
 *   If b reaches a in W, a had confirmed W, and left it after t - 2 D, as b would otherwise have known. Then a heard
 *   within 4 D before t that a link came up, since V has links that W lacks, and does not count confirmations of V.
 *   If b does not reach a in W: suppose that there is a loop through a. It has such a node b, because all other nodes
 *   use only ports that are nearer in V. Between b and a, the loop leaves the nodes that b reaches in W, by a port of
 *   a node c. But c confirmed W, too, and left it after t - 2 D at most. Until t it has added no port that is missing
 *   in W: for that, it would have heard after t - 2 D, and all nodes after t - 3 D, that a link came up, and a would
 *   not count.
 *   While no link comes up, and nobody adds ports by waiting, this holds whatever time messages take.
 *
 * A link comes up or has another rate, and no other is lost: nothing is broken, so nobody drops anything. A node
 * changes to the ports that are nearer in V at k * `convergence_time` after it has heard of the last change, where k is
 * the number of links of the longest path to the destination that these ports permit. Proof. A node that has changed
 * sends to nodes with k - 1 or less, which changed at least D before, and so on: a path that has reached such a node
 * gets nearer in V until it is at the destination. A path that has not follows the former ports, which have no loop.
 * What the former ports were does not matter: they need not be nearer in V. In both proofs of lost links, a change of a
 * rate counts as a link that comes up.
 *
 * Both at once are not safe, because the second proof allows ports that are not nearer in V, and the first does not
 * expect them. A lost link always begins the first procedure at all nodes. A link that comes up while that lasts
 * continues it. Only at its end nodes may differ: one has just completed it, another has not. Therefore a node that
 * completed it less than `convergence_time` ago does step 1, and then waits as in the second procedure
 * (PLANNER_CAREFUL), which agrees with both. A node that has completed it by confirmations counts from the time when it
 * would have completed it by waiting. */
#pragma once

#include "daemon/lib/cluster/route_weights.h"

#define PLANNER_NEVER UINT64_MAX
#define PLANNER_FAR UINT32_MAX
#define PLANNER_CALM                                                                               \
    2u /* confirmations count only if no link came up within this many times `convergence_time` */

enum planner_procedure {
    PLANNER_FAST,    /* a link was lost */
    PLANNER_SMOOTH,  /* links came up */
    PLANNER_CAREFUL, /* links came up just after a change that lost a link */
};

/* What is known about a destination. */
struct planner_route {
    uint32_t ports;   /* in use: bits of ports; 0: packets are dropped */
    uint32_t nearer;  /* bits of the ports that are nearer in the last link states */
    uint32_t hops;    /* shortest path there in the last link states; PLANNER_FAR: none */
    uint32_t longest; /* path by the ports that are nearer */
    uint64_t since;   /* when `ports` has changed last */
    bool linked;      /* links lead there */
    bool is_new;      /* `ports` or `hops` has changed; the caller clears it */
};

struct route_planner {
    const struct torus *torus;
    uint32_t self;
    uint64_t convergence_time;   /* in the unit of the times that the caller gives */
    uint32_t *up;                /* by node: bits of the ports whose links are up */
    bool *forwards;              /* by node: packets of others may pass through it */
    struct planner_route *route; /* by node */
    uint64_t *confirmed; /* by node: the digest of the link states that it has confirmed; 0: none */
    uint32_t *kbit;      /* by node * ports + port: what nodes state of their links; 0: not known */
    uint16_t *rate;      /* the same relative to the fastest links that are up */
    bool rated;          /* these differ */
    uint8_t *weight;     /* by destination * ports + port: route_weights.h; all 0: alike */
    bool weighed;        /* `weight` belongs to the last link states */
    uint32_t *hops, *queue; /* room to work, as are the next three */
    struct route_paths paths;
    uint16_t *fresh_rate;
    uint8_t *fresh_weight;
    enum planner_procedure procedure;
    bool converged, may_confirm;
    uint64_t digest; /* of the last link states */
    uint64_t heard, converged_at;
    uint64_t waited;       /* from the last change until the last route had converged */
    uint64_t found;        /* when a link last came up */
    uint64_t lost, gained; /* how often a port has left a route, or come into one */
    uint64_t changed;      /* when that was, or the first link states were heard */
};

/* Stores the distances of all nodes from `from`, or PLANNER_FAR, over the links that are up; `forwards`: only through
 * nodes that may forward (NULL: through all nodes). `queue` has room for all nodes. */
void route_planner_measure(const struct torus *torus, const uint32_t *up, const bool *forwards,
                           uint32_t from, uint32_t *hops, uint32_t *queue);

/* Starts without links, and without ports in use. Returns 0 with *p, which the caller gives to route_planner_free(). On
 * failure returns -1: memory is short. `torus` must outlive *p. */
int route_planner_init(struct route_planner *p, const struct torus *torus, uint32_t self,
                       uint64_t convergence_time);
void route_planner_free(struct route_planner *p);

/* Returns how long routes take to converge on this torus, in milliseconds: longer if it is large. */
uint32_t route_planner_convergence_ms(const struct torus *torus);

/* Says which ports are in use for a destination, as a previous process left them. To be called before the first
 * route_planner_heard(). */
void route_planner_adopt(struct route_planner *p, uint32_t to, uint32_t ports);

/* Takes the link states: by node, bits of the ports whose links are up, each at both of its ends, and whether packets
 * may pass through it (NULL: through all); and by node * ports + port, what links can carry away from nodes, in kbit/s
 * (0: not known; NULL: all are alike). Does nothing if they have not changed. */
void route_planner_heard(struct route_planner *p, const uint32_t *up, const bool *forwards,
                         const uint32_t *kbit, uint64_t now);

/* Finds the weights for the last link states, which takes some hundredths of a second if links have different rates. To
 * be called after route_planner_heard(), when the kernel has the routes. */
void route_planner_weigh(struct route_planner *p);

/* Returns the weight of a port on the way to a node; 0: packets take other ports, or all ports have 0. */
unsigned route_planner_weight(const struct route_planner *p, uint32_t to, unsigned port);

/* Returns the digest that this node confirms when the kernel has the routes as they are now; 0: none. */
uint64_t route_planner_statement(const struct route_planner *p);

/* Notes what a node has confirmed, this one included. The caller calls route_planner_tick() then. */
void route_planner_confirm(struct route_planner *p, uint32_t node, uint64_t digest);

/* Does what is due. */
void route_planner_tick(struct route_planner *p, uint64_t now);

/* Returns when route_planner_tick() must be called next, or PLANNER_NEVER. */
uint64_t route_planner_deadline(const struct route_planner *p);
