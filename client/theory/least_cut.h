/* The least cut of a network: the fewest links between some nodes and all others. By a theorem of
 * Edmonds a node has exactly as many spanning trees that share no channel, which carry the parts of
 * a broadcast or, in reverse, of a reduction.
 *
 * In a product of connected graphs it is the smallest of these numbers: the links of a node with the
 * fewest, and for each factor its own least cut times the copies of the factor (Xu, Yang:
 * Connectivity of Cartesian Product Graphs, 2006; for more factors by induction). */
#pragma once

#include "daemon/lib/schedule/product.h"

/* Sets *links to the least cut of a network, 0 on a single node. In other graphs flows are counted, about
 * a second for 1024 nodes with 32 links each. Returns 0, or -1 with *e (no memory). */
int least_cut(const struct product *p, uint32_t *links, struct error *e);
