/* Some nodes of a torus, the members, as a network of their own.
 *
 * A link of this network is a path between two members on which no other node is a member. The nodes on the path pass on
 * what comes to them. First each member in turn takes the shortest path to a member with which it has no link yet; no
 * two of these paths share a link of the torus. If that does not connect all members, more paths are added, which share
 * links: then channels have lower rates, as if those that share a link were busy at the same time.
 *
 * All numbers are integers, and every choice follows the order of nodes and ports, so that every node finds the same
 * network for the same damage. */
#pragma once

#include "daemon/lib/schedule/damage.h"

#define OVERLAY_LINKS_MOST 31u /* of a member: number_links() of graph.c may need one more number */

/* A path between two members, seen from the one with the smaller number. */
struct overlay_link {
    uint32_t member[2];
    unsigned port[2];     /* of the network, at these members */
    uint32_t first, hops; /* its ports: overlay.port[first] to overlay.port[first + hops - 1] */
};

struct overlay {
    /* One dimension: a graph, or a ring of one. Its nodes are the numbers of the members, in the order of their ranks. */
    struct torus torus;
    struct damage damage; /* of that network: nothing is down; the rates of its channels */
    uint32_t *node;       /* by member: its rank in the torus */
    struct overlay_link *link;
    uint32_t links;
    uint8_t *port;
    uint32_t passing; /* the most channels that pass a node that is no member */
};

/* How a channel of the network crosses a node: the ports of the node through which its data comes and leaves, -1 where
 * it begins or ends. Both -1: it does not cross the node. */
struct overlay_hop {
    int8_t in, out;
};

/* Finds the network of the members, of which there is at least one, without what is down. Returns 0 with *o, which the
 * caller gives to overlay_free(); or -1 with *e: members cannot reach each other (ERROR_LINK), there are more than
 * GRAPH_NODES_MOST (ERROR_REFUSED), no memory. */
int overlay_find(struct overlay *o, const struct damage *d, const bool *is_member, struct error *e);
/* Frees what *o holds, and empties *o; it may be all zero. */
void overlay_free(struct overlay *o);

/* Returns the number of channels, including those that do not exist: channel member * torus_ports(&o->torus) + port. */
static inline uint32_t overlay_channels(const struct overlay *o)
{
    return o->torus.nodes * torus_ports(&o->torus);
}

/* Sets hop[], with an entry for each channel, for a node of the torus `t`. */
void overlay_hops(const struct overlay *o, const struct torus *t, uint32_t node,
                  struct overlay_hop *hop);
