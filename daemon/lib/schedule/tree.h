/* The spanning tree over which a root reaches all nodes (prepare, go, commit) and hears from all
 * (ready, done). On a whole torus, a node's parent is the node before it on the dimension-ordered
 * shortest path from the root. Every node computes its own part; nothing is sent for that. */
#pragma once

#include "daemon/lib/schedule/damage.h"

struct tree_node {
    int parent;                     /* port towards the root; -1 at the root */
    unsigned children;              /* how many ports lead to children */
    uint8_t child[TORUS_MAX_PORTS]; /* the ports to children, ascending */
};

/* The port of `rank` towards the root in the tree of a whole torus; -1 at the root. */
int tree_parent(const struct torus *t, uint32_t root, uint32_t rank);

/* Computes the part of node `rank` in the tree of a whole torus. */
void tree_node(const struct torus *t, uint32_t root, uint32_t rank, struct tree_node *out);

/* Finds a tree of fewest hops over the links that are in order. Fills `parent`, by node, with the
 * port towards the root; TREE_NONE at the root and at nodes that cannot reach it. Returns 0, or -1
 * with *e (no memory). */
#define TREE_NONE UINT8_MAX
int tree_find(const struct damage *d, uint32_t root, uint8_t *parent, struct error *e);
/* The same without links of less than half of the full rate if the others suffice; otherwise without those of less than
 * a quarter, and so on. */
int tree_find_fast(const struct damage *d, uint32_t root, uint8_t *parent, struct error *e);
/* Sets *out to the part of node `rank` in such a tree. */
void tree_node_found(const struct torus *t, const uint8_t *parent, uint32_t rank,
                     struct tree_node *out);
