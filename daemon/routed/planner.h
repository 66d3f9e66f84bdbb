/* By which ports a node forwards packets to every other node: all shortest ways over the links that are up. No I/O;
 * every node computes its part from the same link states.
 *
 * Nodes hear of a change at different moments. No packet may go round in a loop in between, whatever the order. The
 * rule rests on one assumption: every node hears of a change at most `settle` / 2 after the first one. (Link states
 * are flooded within a few milliseconds a hop.) Let V be the link states after a change, and call a port "nearer" if
 * it leads to a node that is nearer to the destination in V.
 *
 * A link is lost:
 *   1. At once, each node keeps only those of the ports that it uses which are nearer in V. It adds none.
 *   2. When it has heard of no change for more than `settle` / 2, it uses all ports that are nearer in V.
 * Proof. During 1, ports only disappear, so what had no loop before has none. When the first node does 2, every node
 * has done 1, so that all ports in use anywhere lead nearer in V: no way can come back to where it began.
 *
 * A link comes up, and no other is lost: nothing is broken, so nobody drops anything. A node goes over to the ports
 * that are nearer in V at k * `settle` after it has heard of the last change, where k is its new distance to the
 * destination.
 * Proof. A node that has gone over sends to nodes at distance k - 1, which went over at least `settle` / 2 before, and
 * so on: a way that has reached such a node gets nearer in V until it is at the destination. A way that has not
 * follows the former ports, which have no loop.
 *
 * Both at once are not safe, because the second proof allows ports that are not nearer in V, and the first does not
 * expect them. A lost link always begins the first procedure at all nodes. A link that comes up while that lasts
 * continues it. Only at its end nodes may differ: one has just completed it, another has not. Therefore a node that
 * completed it less than `settle` ago does step 1, and then waits as in the second procedure (PLANNER_CAREFUL), which
 * agrees with both. */
#ifndef TORUSD_ROUTED_PLANNER_H
#define TORUSD_ROUTED_PLANNER_H

#include "daemon/schedule/torus.h"

#define PLANNER_NEVER UINT64_MAX
#define PLANNER_FAR UINT32_MAX

enum planner_way {
    PLANNER_FAST,    /* a link was lost */
    PLANNER_SMOOTH,  /* links came up */
    PLANNER_CAREFUL, /* links came up just after a change that lost a link */
};

/* What is known about a destination. */
struct planner_route {
    uint32_t ports;  /* in use: bits of ports; 0: packets are dropped */
    uint32_t nearer; /* bits of the ports that are nearer in the last link states */
    uint32_t hops;   /* shortest way there in the last link states; PLANNER_FAR: none */
    uint64_t since;  /* when `ports` has changed last */
    bool is_new;     /* `ports` or `hops` has changed; the caller clears it */
};

struct planner {
    const struct torus *torus;
    uint32_t self;
    uint64_t settle;             /* in the unit of the times that the caller gives */
    uint32_t *up;                /* by node: bits of the ports whose links are up */
    struct planner_route *route; /* by node */
    uint32_t *hops, *queue;      /* room to work */
    enum planner_way way;
    bool settled;
    uint64_t heard, settled_at;
};

/* Starts without links, and without ports in use. Returns 0 with *p, which the caller gives to planner_free(), or -1
 * if there is no memory. `torus` must outlive *p. */
int planner_init(struct planner *p, const struct torus *torus, uint32_t self, uint64_t settle);
void planner_free(struct planner *p);

/* Returns how long changes take to settle on this torus, in milliseconds: longer if it is large. */
uint32_t planner_settle_ms(const struct torus *torus);

/* Says which ports are in use for a destination, as a former process left them. To be called before the first
 * planner_heard(). */
void planner_adopt(struct planner *p, uint32_t to, uint32_t ports);

/* Takes the link states: by node, bits of the ports whose links are up, each at both of its ends. Does nothing if they
 * have not changed. */
void planner_heard(struct planner *p, const uint32_t *up, uint64_t now);

/* Does what is due. */
void planner_tick(struct planner *p, uint64_t now);

/* Returns when planner_tick() must be called next, or PLANNER_NEVER. */
uint64_t planner_deadline(const struct planner *p);

#endif
