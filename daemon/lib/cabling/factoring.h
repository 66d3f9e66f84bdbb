/* Finds the prime factors of a network, of which it is the Cartesian product. */
#pragma once

#include "daemon/lib/cabling/grid.h"
#include "daemon/lib/cabling/network.h"

/* Factors the network of all nodes that have links, which must be connected. Sets *g, whose `host` the caller frees.
 * `other`: factors may be graphs of no kind (factor_graph.h). Returns 1; 0 if the network has no such factors; -1 with
 * *e if there is no memory.
 *
 * The links fall into classes, one for each factor: the finest equivalence in which two links are together if they are
 * related by distances (d(a,c) + d(b,d) is not d(a,d) + d(b,c)), or meet at a node that is the only common neighbour
 * of their other ends. Feder: Product Graph Representations (1992). */
int factoring_find(struct grid *g, const struct network *n, bool other, struct error *e);
