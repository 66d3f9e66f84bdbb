/* What the sources of this folder share. */
#pragma once

#include "daemon/lib/schedule/graph/graph.h"

/* Makes a graph of edges, as graph_of_edges(), under a text of its own; with NULL the text is
 * made from the edges. If a graph with this text is known, returns that one. */
const struct graph *graph_make(const uint32_t *edge, size_t count, enum graph_kind kind,
                               const char *text, struct error *e);

/* Sets *cut as graph.h says. Up to GRAPH_CUT_EXACT nodes every part is tried; above, balls around each
 * node; from the best of them single nodes are moved as long as the bound rises. Returns 0, or -1 without
 * memory. */
#define GRAPH_CUT_EXACT 16u
int graph_cut(const struct graph *g, double *cut);
