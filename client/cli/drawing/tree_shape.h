/* The places of the nodes of a graph that is a tree. */
#pragma once

#include "client/cli/drawing/point.h"
#include "daemon/lib/schedule/graph/graph.h"

/* Stores the places in `at` (array of the nodes): by levels below the root, or in circles around it if there are many
 * leaves. The root is node 0 of a `tree:` factor, else a node in the middle. Returns 0, or -1 if there is no memory. */
int tree_shape(const struct graph *g, struct point *at);
