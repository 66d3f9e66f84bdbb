#include "client/cli/drawing/tree_shape.h"

#include <stdlib.h>

enum { MOST_LEAVES = 24 }; /* side by side */
static const double level_height = 1.3;
static const double turn = 6.28318530717958647692;

static uint32_t farthest(const struct graph *g, uint32_t from)
{
    uint32_t most = 0;

    for (uint32_t to = 0; to < g->nodes; to++)
        most = graph_distance(g, from, to) > most ? graph_distance(g, from, to) : most;
    return most;
}

static uint32_t root_of(const struct graph *g)
{
    uint32_t root = 0;

    for (uint32_t node = 1; node < g->nodes && g->kind != GRAPH_KIND_TREE; node++)
        if (farthest(g, node) < farthest(g, root))
            root = node;
    return root;
}

/* A walk through the tree: at each level the node, and the direction to be followed next. */
struct level {
    uint32_t node;
    unsigned direction;
    double first; /* place of the first child */
    unsigned children;
};

/* Stores the place of each node along its level in `at[].x`: leaves are 1 apart, other nodes are above the middle of
 * their children. Stores the level in `at[].y`. Returns how many leaves there are. */
static uint32_t place(const struct graph *g, uint32_t root, struct level *path, struct point *at)
{
    uint32_t leaves = 0, depth = 0;

    path[0] = (struct level){.node = root};
    for (;;) {
        struct level *here = &path[depth];
        uint32_t next = GRAPH_NO_NODE;
        while (next == GRAPH_NO_NODE && here->direction < g->directions) {
            next = graph_neighbour(g, here->node, here->direction++);
            if (next != GRAPH_NO_NODE && depth > 0 && next == path[depth - 1].node)
                next = GRAPH_NO_NODE;
        }
        if (next != GRAPH_NO_NODE) {
            path[++depth] = (struct level){.node = next};
            continue;
        }
        struct point *p = &at[here->node];
        p->x = here->children == 0 ? leaves++ : (here->first + p->x) / 2;
        p->y = depth;
        if (depth == 0)
            return leaves;
        struct level *above = &path[--depth];
        if (above->children++ == 0)
            above->first = p->x;
        at[above->node].x = p->x; /* the last child so far */
    }
}

int tree_shape(const struct graph *g, struct point *at)
{
    struct level *path = calloc(g->nodes, sizeof *path);
    uint32_t root = root_of(g), leaves;

    if (path == NULL)
        return -1;
    leaves = place(g, root, path, at);
    free(path);
    double radius = leaves / turn / farthest(g, root);
    radius = radius < level_height ? level_height : radius;
    for (uint32_t node = 0; node < g->nodes; node++) {
        double angle = turn * at[node].x / leaves, level = at[node].y;
        at[node].y = level * level_height;
        if (leaves > MOST_LEAVES)
            at[node] = (struct point){level * radius * cos(angle), level * radius * sin(angle)};
    }
    return 0;
}
