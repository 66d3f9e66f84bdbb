/* The spanning tree over which a root reaches every node (prepare, go, commit) and hears back from
 * all (ready, done): each node hangs below the one that the dimension-ordered shortest path from
 * the root comes through. Every node computes its own part; nothing is sent. */
#ifndef TORUSD_SCHEDULE_TREE_H
#define TORUSD_SCHEDULE_TREE_H

#include "daemon/schedule/torus.h"

struct tree_node {
    int parent;                     /* port towards the root; -1 at the root */
    unsigned children;              /* how many ports lead to children, */
    uint8_t child[TORUS_MAX_PORTS]; /* and which; rising */
};

void tree_node(const struct torus *t, uint32_t root, uint32_t rank, struct tree_node *out);

#endif
