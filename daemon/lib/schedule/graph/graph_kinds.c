#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/schedule/graph/graph_record.h"

static const struct graph *refuse(struct error *e, const char *text, const char *what)
{
    (void)error_set(e, ERROR_USAGE, "%s: %s", text, what);
    return NULL;
}

const struct graph *graph_complete(uint32_t nodes, struct error *e)
{
    char text[GRAPH_TEXT_SIZE];
    size_t count = 0;

    (void)snprintf(text, sizeof text, "complete:%u", nodes);
    if (nodes < 2 || nodes > GRAPH_DIRECTIONS_MOST + 1)
        return refuse(e, text, "a complete graph has 2 to 33 nodes");
    uint32_t edge[(GRAPH_DIRECTIONS_MOST + 1) * GRAPH_DIRECTIONS_MOST];
    for (uint32_t a = 0; a < nodes; a++)
        for (uint32_t b = a + 1; b < nodes; b++) {
            edge[2 * count] = a;
            edge[2 * count++ + 1] = b;
        }
    return graph_make(edge, count, GRAPH_KIND_COMPLETE, text, e);
}

const struct graph *graph_star(uint32_t nodes, struct error *e)
{
    char text[GRAPH_TEXT_SIZE];
    uint32_t edge[2 * GRAPH_DIRECTIONS_MOST];

    (void)snprintf(text, sizeof text, "star:%u", nodes);
    if (nodes < 2 || nodes > GRAPH_DIRECTIONS_MOST + 1)
        return refuse(e, text, "a star has 2 to 33 nodes");
    for (uint32_t i = 1; i < nodes; i++) {
        edge[2 * i - 2] = 0;
        edge[2 * i - 1] = i;
    }
    return graph_make(edge, nodes - 1, GRAPH_KIND_STAR, text, e);
}

const struct graph *graph_tree(uint32_t branches, uint32_t depth, struct error *e)
{
    char text[GRAPH_TEXT_SIZE];
    uint32_t edge[2 * GRAPH_NODES_MOST], nodes = 1, level = 1, parent = 0;

    (void)snprintf(text, sizeof text, "tree:%u^%u", branches, depth);
    if (branches == 0 || depth == 0)
        return refuse(e, text, "a tree has at least one branch a node, and one level of them");
    if (branches >= GRAPH_DIRECTIONS_MOST)
        return refuse(e, text, "a tree has at most 31 branches a node");
    for (uint32_t i = 0; i < depth; i++) {
        if (level * branches > GRAPH_NODES_MOST - nodes)
            return refuse(e, text, "a tree has at most 1024 nodes");
        level *= branches;
        nodes += level;
    }
    for (uint32_t node = 1; node < nodes; node++) {
        parent = (node - 1) / branches;
        edge[2 * node - 2] = parent;
        edge[2 * node - 1] = node;
    }
    return graph_make(edge, nodes - 1, GRAPH_KIND_TREE, text, e);
}
