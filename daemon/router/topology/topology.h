/* What a node knows of all the links of the torus: for every node the set of its ports that are up,
 * as that node states it. A link is up when both its ends say so; a node is down when the other
 * ends of all its links say that they are down. Pure bookkeeping: flood.c sends and receives the
 * statements.
 *
 * Only a node itself can state which of its ports are up. A statement reaches the others as a claim
 * that every node repeats to its neighbours together with the hops that it has come: 0 is the node
 * itself. For each port we keep the last claim of the neighbour there about every node, as long as
 * that link is up. We believe the claim with the highest version, so that news is believed
 * whichever way it comes first, and among equals the one with the fewest hops. A node that hears a
 * claim about itself which is not older than its own statement takes a higher version; the highest
 * is UINT32_MAX, which it then keeps. Versions make things fast; nothing depends on them.
 *
 * Why a false claim does not last, whatever it says and wherever it is made: call a belief rooted
 * if it was copied, hop by hop, from what its node states now. Suppose that from some moment on no
 * more false claims are made and no link changes, and that what was on its way has arrived.
 *
 *   1. Of the beliefs about a node that are not rooted, take one with the fewest hops, h. It is one
 *      hop more than the claim of a neighbour, which believes it too, and whose belief is not
 *      rooted either. So h grows by at least one each time that all neighbours have told each other
 *      their news; and as many hops as there are nodes mean "cannot be reached", since no path is
 *      that long. After at most that many rounds there is no belief left that is not rooted. (The
 *      node itself may have taken a higher version meanwhile, if it has heard of such a belief;
 *      once there are none it has no more reason to, and the same holds again for what it has
 *      stated before.)
 *   2. Then all beliefs about the node have the same version, and fewest hops decide: the nodes at
 *      distance 1 (over links that are up) believe the node itself, those at distance 2 believe
 *      these, and so on. Everybody believes what the node states, and there it stays.
 *
 * So no version is final, even where the highest has been claimed, and it does not matter which
 * node is restarted. A claim of fewer hops than the cabling permits is refused. A neighbour repeats
 * all that it knows from time to time (flood.c), which replaces a claim that was damaged on its
 * way.
 *
 * Of a node that cannot be reached at all the last belief is kept, but not repeated. */
#ifndef TORUSD_ROUTER_TOPOLOGY_TOPOLOGY_H
#define TORUSD_ROUTER_TOPOLOGY_TOPOLOGY_H

#include "daemon/schedule/torus.h"
#include "proto/error.h"

struct topology_entry {
    uint32_t hops;    /* torus->nodes or more: it cannot be reached */
    uint32_t version; /* of the node's statement */
    uint32_t up;      /* bit p: port p is up */
    uint64_t boot;    /* differs after every start of the node; 0: never heard of */
};

struct topology {
    const struct torus *torus;
    uint32_t self;
    uint64_t changes;                                /* of ports that are up, as we believe */
    struct topology_entry *entry;                    /* what we believe, by rank */
    uint8_t *via;                                    /* the port of the claim that we believe */
    struct topology_entry *claimed[TORUS_MAX_PORTS]; /* by port and rank; NULL: no link there */
};

/* Returns 0, or -1 if there is no memory. `torus` must outlive the topology. */
int topology_init(struct topology *p, const struct torus *torus, uint32_t self, uint64_t boot);
void topology_free(struct topology *p);

/* Our own ports have changed. */
void topology_set_self(struct topology *p, unsigned port, bool up);

enum topology_news {
    TOPOLOGY_SAME,
    TOPOLOGY_REPEAT, /* the hops or the version have changed: neighbours must be told */
    TOPOLOGY_NEW,    /* so must they, and some link or node is not as we believed */
};

/* The neighbour at `port` claims this of `rank`, which must be in the torus. Returns what that
 * changes in our entry about `rank`. */
enum topology_news topology_hear(struct topology *p, unsigned port, uint32_t rank,
                                 const struct topology_entry *claim);

/* The link at `port` is down: nothing is claimed there any more about `rank`. */
enum topology_news topology_unhear(struct topology *p, unsigned port, uint32_t rank);

bool topology_link_up(const struct topology *p, uint32_t rank, unsigned port);

/* The other ends of all its links say that they are down (and it has links at all). */
bool topology_node_down(const struct topology *p, uint32_t rank);

/* True if every link of every node is up. */
bool topology_whole(const struct topology *p);

/* The `index`-th fault as an ERROR_LINK ("node 5 is down: none of its links is up") whose culprit is that node or
 * link: each link once, and links of nodes that are down left out. Returns false, *e as it was, when there are no
 * more. */
bool topology_fault(const struct topology *p, unsigned index, struct error *e);

/* The first fault as topology_fault() has it, links that are known to be down left out: `known` is NULL
 * or has for each node the ports (bits) where they are. A node that is down is one if any of its links
 * is not among them. */
bool topology_new_fault(const struct topology *p, const uint32_t *known, struct error *e);

/* The first node that is down, or TORUS_NO_NODE. */
uint32_t topology_first_down(const struct topology *p);

#endif
