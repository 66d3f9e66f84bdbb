/* Finds a regular group of automorphisms of a graph: for each node exactly one automorphism, its move, that takes node 0
 * to it, and moves after one another are moves again. A graph has such a group exactly if it is the Cayley graph of a
 * group (Sabidussi). If the route of a block is moved together with its ends, all nodes do the same. */
#pragma once

#include "daemon/lib/schedule/graph/graph.h"

/* Sets *moves to an array that the caller frees: the node to which the move of node s takes a node is at s * nodes + node.
 * Returns 1. Returns 0, without an array, if the graph has no such group, or if the search found none. The search ends
 * after GRAPH_GROUP_WORK comparisons, which take about a second. On failure returns -1: memory is short. The result is the
 * same on all machines. It depends
 * on the numbers of the nodes if the search ends early: the product of two complete graphs of 8 nodes, which has many
 * automorphisms that are in no such group, has one in the order of its coordinates, and none in three others. */
#define GRAPH_GROUP_WORK (UINT64_C(1) << 29)
int graph_group(const struct graph *g, uint16_t **moves);
