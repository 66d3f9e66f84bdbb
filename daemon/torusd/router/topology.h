/* What a node knows about all links of the torus: for every node, the set of ports that this node states to
 * be up. A link is up when both its ends say so. A node is down when the other ends of all its links say that
 * they are down. No I/O: flood.c sends and receives the statements.
 *
 * Only a node itself can state which of its ports are up. Every node repeats the statement to its neighbours
 * as a claim, with the number of hops that the claim has travelled (0: the node itself). For each port a node
 * keeps the neighbour's last claim about every node, as long as the link is up. It believes the claim with
 * the highest version, so that news spread by the fastest way, among equal versions one with the highest boot
 * number, and among those the one with the fewest hops. If a node hears a claim about itself that is not older
 * than its own statement, it raises its version above that of the claim; UINT32_MAX is kept. Versions only make
 * news spread faster; correctness does not depend on them.
 *
 * If two machines have one rank, neither of them wins: all nodes that reach both believe the same one, so that
 * the other one hears of it and overrules it. So both learn that there are two (flood.c). Without the boot
 * numbers, each node would keep the nearer one of two claims with equal versions, and neither machine would hear
 * of the other.
 *
 * A false claim does not last, whatever it says and wherever it is made. Proof: call a belief rooted if it
 * was copied, hop by hop, from what its node states now. Suppose that from some moment on no more false
 * claims are made and no link changes, and that all messages on their way have arrived.
 *
 *   1. Among the beliefs about a node that are not rooted, take one with the fewest hops, h. It was copied from
 *      a neighbour's claim with one hop less; the neighbour believes that claim, which is not rooted either. So
 *      h grows by at least one each time that all neighbours have told each other their news. A belief with as
 *      many hops as there are nodes means "cannot be reached", because no path is that long. So after at most
 *      that many rounds no belief is left that is not rooted. (The node itself may have raised its version in the meantime, because it heard of such a belief. When none is left it has no reason to do so again, and
 *      the same argument removes the beliefs in its earlier statements.)
 *   2. Then all beliefs about the node have the same version and boot number, and the fewest hops decide: the nodes at
 *      distance 1 (over links that are up) believe the node itself, those at distance 2 believe the nodes at
 *      distance 1, and so on. All nodes believe what the node states, and this no longer changes.
 *
 * So no version is final, not even the highest possible one, and any node may restart at any time. A claim
 * with fewer hops than the cabling permits is refused. From time to time each neighbour repeats all that it
 * knows (flood.c), which replaces a claim that was damaged on its way.
 *
 * The last belief about a node that cannot be reached is kept, and told to neighbours with so many hops
 * that nobody believes it. */
#pragma once

#include <stddef.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

struct topology_entry {
    uint32_t hops;    /* torus->nodes or more: the node cannot be reached */
    uint32_t version; /* of the node's statement */
    uint32_t up;      /* bit p: port p is up */
    uint64_t boot;    /* differs after every start of the node; 0: never heard of */
    uint32_t minor;   /* minor version of the protocol that the node speaks */
    uint64_t
        confirmed; /* link states with which its IP routes agree (daemon/lib/cluster/route_planner.h); 0: not said */
    uint32_t forwards; /* enum topology_forwards; others count as UNSAID */
    uint32_t quiet;    /* bit p: port p is up, but has brought nothing for a moment */
    /* For each port, the kbit/s that the node can send there, and those that it can receive; 0: not known. NULL:
     * nothing is known. */
    const uint32_t *rates;
};

/* Whether IP packets of other nodes may pass through a node. */
enum topology_forwards { TOPOLOGY_FORWARDS_UNSAID, TOPOLOGY_FORWARDS, TOPOLOGY_FORWARDS_NOT };

struct topology {
    const struct torus *torus;
    uint32_t self;
    uint64_t changes;             /* how often the believed set of ports that are up has changed */
    uint64_t rate_changes;        /* how often the believed rates of a node have changed */
    struct topology_entry *entry; /* this node's beliefs, by rank */
    uint8_t *via;                 /* by rank: the port whose claim this node believes */
    struct topology_entry *claimed[TORUS_MAX_PORTS]; /* by port and rank; NULL: no link there */
    /* The rates of all entries above, in the same order; NULL: none was ever stated. */
    uint32_t *rates, *claimed_rates[TORUS_MAX_PORTS];
};

/* Returns 0, or -1 if there is no memory. `torus` must outlive the topology. */
int topology_init(struct topology *p, const struct torus *torus, uint32_t self, uint64_t boot);
/* Frees the memory of the topology. */
void topology_free(struct topology *p);

/* Sets the minor version of the protocol that this node speaks. To be called before links come up. */
void topology_set_minor(struct topology *p, uint32_t minor);

/* Returns the least minor version of all nodes that can be reached, with this node. */
uint32_t topology_least_minor(const struct topology *p);

/* States with which link states the IP routes of this node agree, whether it forwards, and which ports are quiet.
 * Returns whether that has changed. */
bool topology_set_routes(struct topology *p, uint64_t confirmed, enum topology_forwards forwards,
                         uint32_t quiet);

/* States what the ports of this node can carry (topology_entry.rates; copied). Returns whether that has changed. If
 * there is no memory, nothing is stated. */
bool topology_set_rates(struct topology *p, const uint32_t *rates);

/* Returns how many numbers topology_entry.rates has. */
size_t topology_rates_count(const struct topology *p);

/* Returns what the link at this port of `rank` can carry away from that node, in kbit/s: the smaller number of those
 * that its two ends state. 0: neither states any. */
uint32_t topology_channel_rate(const struct topology *p, uint32_t rank, unsigned port);

/* To be called when a port of this node has come up or gone down. */
void topology_set_self(struct topology *p, unsigned port, bool up);

enum topology_news {
    TOPOLOGY_SAME,
    TOPOLOGY_REPEAT, /* the hops, the version, rates or what concerns IP routes have changed: tell neighbours */
    TOPOLOGY_NEW, /* tell neighbours; a link or node has changed its state */
};

/* Records a claim of the neighbour at `port` about `rank`, which must be in the torus; its rates are copied. Returns
 * how this node's belief about `rank` changes. */
enum topology_news topology_take_claim(struct topology *p, unsigned port, uint32_t rank,
                                       const struct topology_entry *claim);

/* Drops the claim of `port`, whose link is down, about `rank`. Returns how this node's belief about `rank`
 * changes. */
enum topology_news topology_drop_claim(struct topology *p, unsigned port, uint32_t rank);

/* Whether both ends of the link at this port of `rank` say that it is up. */
bool topology_link_up(const struct topology *p, uint32_t rank, unsigned port);

/* Whether the other ends of all its links say that they are down (false if it has no links). */
bool topology_node_down(const struct topology *p, uint32_t rank);

/* Whether either end of the link at this port of `rank` says that it is quiet. */
bool topology_link_quiet(const struct topology *p, uint32_t rank, unsigned port);

/* Whether every link of every node is up. */
bool topology_whole(const struct topology *p);

/* Fills *e with the `index`-th fault as an ERROR_LINK ("node 5 is down: none of its links is up") whose
 * culprit is that node or link. Each link counts once; links of nodes that are down are left out. Returns
 * false, and leaves *e alone, when there are no more. */
bool topology_fault(const struct topology *p, unsigned index, struct error *e);

/* Like topology_fault() for the first fault that is not in `known`, which has for each node the bits of the
 * ports whose links are known to be down; NULL: none. A node that is down is a new fault if any of its
 * links is not in `known`. */
bool topology_new_fault(const struct topology *p, const uint32_t *known, struct error *e);

/* The first node that is down, or TORUS_NO_NODE. */
uint32_t topology_first_down(const struct topology *p);
