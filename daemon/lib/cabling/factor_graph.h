/* Names the graph of one factor: a ring, a line, complete, a star, a tree. */
#pragma once

#include "daemon/lib/cabling/grid.h"

/* A connected graph without repeated edges. */
struct factor_graph {
    uint32_t nodes;
    bool *edge;   /* node * nodes + node */
    bool doubled; /* each edge stands for two cables */
};

/* Sets *f, and the order of its nodes: order[i] is the node of the graph that has coordinate i. `other`: a graph of no
 * kind may be made, which is then kept for ever (graph_of_edges()). Returns 1; 0 if the graph has no name or too many
 * edges at a node; -1 with *e if there is no memory. */
int factor_graph_name(const struct factor_graph *g, bool other, struct grid_factor *f,
                      uint32_t *order, struct error *e);
