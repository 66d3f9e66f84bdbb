/* What a node has heard of all the links of the torus: for every node the set of its ports that are
 * up by its own word. A link is up when both its ends say so; a node is down when every other end
 * of its links says that it is. Pure bookkeeping: router.c floods the entries. */
#ifndef TORUSD_ROUTER_TOPOLOGY_H
#define TORUSD_ROUTER_TOPOLOGY_H

#include "daemon/schedule/torus.h"

struct topology_entry {
    uint32_t version; /* 0: never heard of */
    uint32_t up;      /* bit p: port p is up */
    uint64_t boot;
};

struct topology {
    const struct torus *torus;
    uint32_t self;
    struct topology_entry *entry; /* by rank */
};

/* Returns 0, or -1 if there is no memory. `torus` must outlive the topology. */
int topology_init(struct topology *p, const struct torus *torus, uint32_t self, uint64_t boot);
void topology_free(struct topology *p);

/* Our own ports have changed. */
void topology_set_self(struct topology *p, unsigned port, bool up);

enum topology_news { TOPOLOGY_OLD, TOPOLOGY_NEW, TOPOLOGY_OUTDATED_SELF };

/* Takes in an entry that somebody passed on. OUTDATED_SELF: it is about us, from before our start;
 * our own entry now has a higher version and must be spread again. Rank must be in the torus. */
enum topology_news topology_hear(struct topology *p, uint32_t rank, uint32_t version, uint32_t up,
                                 uint64_t boot);

bool topology_link_up(const struct topology *p, uint32_t rank, unsigned port);

/* All its links are down by their other ends' word (and it has links at all). */
bool topology_node_down(const struct topology *p, uint32_t rank);

/* True if every link of every node is up. */
bool topology_whole(const struct topology *p);

/* The `index`-th fault in words ("node 5 is down: none of its links is up"), each link once and
 * links of nodes that are down left out. Returns false when there are no more. */
bool topology_fault(const struct topology *p, unsigned index, char *text, size_t size);

/* The first node that is down, or TORUS_NO_NODE. */
uint32_t topology_first_down(const struct topology *p);

#endif
