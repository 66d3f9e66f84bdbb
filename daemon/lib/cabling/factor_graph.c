#include "daemon/lib/cabling/factor_graph.h"

#include <stdlib.h>
#include <string.h>

static bool edge(const struct factor_graph *g, uint32_t a, uint32_t b)
{
    return g->edge[(size_t)a * g->nodes + b];
}

static uint32_t degree(const struct factor_graph *g, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < g->nodes; i++)
        count += edge(g, node, i);
    return count;
}

/* Puts the nodes in an order in which each one's new neighbours follow one after the other. */
static void walk(const struct factor_graph *g, uint32_t from, uint32_t *order)
{
    bool seen[CABLING_HOSTS_MOST] = {false};
    uint32_t count = 0;

    order[count++] = from;
    seen[from] = true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t next = 0; next < g->nodes; next++)
            if (!seen[next] && edge(g, order[i], next)) {
                seen[next] = true;
                order[count++] = next;
            }
}

/* As walk(), straight on along a ring or line. */
static void walk_along(const struct factor_graph *g, uint32_t from, uint32_t *order)
{
    bool seen[CABLING_HOSTS_MOST] = {false};

    for (uint32_t i = 0; i < g->nodes; i++) {
        order[i] = from;
        seen[from] = true;
        for (uint32_t next = 0; next < g->nodes; next++)
            if (!seen[next] && edge(g, order[i], next)) {
                from = next;
                break;
            }
    }
}

/* How many nodes have this degree, and the last of them. */
static uint32_t count_degree(const uint32_t *degrees, uint32_t nodes, uint32_t wanted,
                             uint32_t *last)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < nodes; i++)
        if (degrees[i] == wanted) {
            count++;
            *last = i;
        }
    return count;
}

/* Whether the graph is the tree with these branches, if its nodes are numbered in this order. */
static bool is_tree(const struct factor_graph *g, const struct graph *tree, const uint32_t *order)
{
    uint32_t links = 0;

    if (tree == NULL || tree->nodes != g->nodes)
        return false;
    for (uint32_t a = 0; a < g->nodes; a++)
        for (uint32_t b = a + 1; b < g->nodes; b++) {
            bool there = edge(g, order[a], order[b]);
            links += there;
            if (there != (graph_distance(tree, a, b) == 1))
                return false;
        }
    return links == tree->links;
}

static bool find_tree(const struct factor_graph *g, const uint32_t *degrees, struct grid_factor *f,
                      uint32_t *order)
{
    uint32_t most = 0, root = 0, leaf = 0, level = 1, nodes = 1, depth = 0;

    for (uint32_t i = 0; i < g->nodes; i++)
        most = degrees[i] > most ? degrees[i] : most;
    if (most < 3 || count_degree(degrees, g->nodes, 1, &leaf) == 0 ||
        count_degree(degrees, g->nodes, most - 1, &root) != 1)
        return false;
    while (nodes < g->nodes) {
        level *= most - 1;
        nodes += level;
        depth++;
    }
    if (nodes != g->nodes)
        return false;
    walk(g, root, order);
    f->graph = graph_tree(most - 1, depth, &(struct error){.code = ERROR_NONE});
    return is_tree(g, f->graph, order);
}

static int make_other(const struct factor_graph *g, struct grid_factor *f, uint32_t *order,
                      struct error *e)
{
    size_t count = 0, room = (size_t)g->nodes * g->nodes + 1;
    uint32_t *edges = calloc(room, sizeof *edges);
    struct error why;

    if (edges == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for a graph of %u nodes", g->nodes);
    for (uint32_t a = 0; a < g->nodes; a++) {
        order[a] = a;
        for (uint32_t b = a + 1; b < g->nodes; b++)
            if (edge(g, a, b)) {
                edges[2 * count] = a;
                edges[2 * count++ + 1] = b;
            }
    }
    f->graph = graph_of_edges(edges, count, &why);
    free(edges);
    if (f->graph == NULL && why.code == ERROR_MEMORY)
        return error_set(e, ERROR_MEMORY, "%s", why.text);
    return f->graph != NULL;
}

/* Rings, lines, stars, and complete graphs. */
static bool find_simple(const struct factor_graph *g, const uint32_t *degrees,
                        struct grid_factor *f, uint32_t *order)
{
    uint32_t n = g->nodes, last = 0;
    uint32_t twos = count_degree(degrees, n, 2, &last);
    uint32_t ones = count_degree(degrees, n, 1, &last); /* `last` is an end of a line */
    struct error why;

    if (twos == n || (ones == 2 && twos == n - 2)) {
        f->wrap = ones == 0 || g->doubled;
        walk_along(g, ones == 0 ? 0 : last, order);
        return true;
    }
    if (n > GRAPH_DIRECTIONS_MOST + 1)
        return false;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    if (count_degree(degrees, n, n - 1, &last) == n) {
        f->graph = graph_complete(n, &why);
        return f->graph != NULL;
    }
    if (ones == n - 1 && count_degree(degrees, n, n - 1, &last) == 1) {
        walk(g, last, order);
        f->graph = graph_star(n, &why);
        return f->graph != NULL;
    }
    return false;
}

int factor_graph_name(const struct factor_graph *g, bool other, struct grid_factor *f,
                      uint32_t *order, struct error *e)
{
    uint32_t degrees[CABLING_HOSTS_MOST];

    *f = (struct grid_factor){.size = g->nodes};
    if (g->doubled && g->nodes != 2)
        return 0;
    for (uint32_t i = 0; i < g->nodes; i++)
        degrees[i] = degree(g, i);
    if (find_simple(g, degrees, f, order) || find_tree(g, degrees, f, order))
        return 1;
    f->graph = NULL;
    return other ? make_other(g, f, order, e) : 0;
}
