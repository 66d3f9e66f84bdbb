#include "daemon/lib/cabling/factoring.h"

#include <stdlib.h>

#include "daemon/lib/cabling/factor_graph.h"
#include "daemon/lib/cabling/link_classes.h"

struct factoring {
    const struct network *net;
    struct link_classes classes;
    uint32_t *coordinate; /* node * GRID_FACTORS_MOST + factor */
    uint32_t size[GRID_FACTORS_MOST];
    uint32_t nodes; /* with links */
};

static uint32_t *coordinate(const struct factoring *f, uint32_t node, unsigned factor)
{
    return &f->coordinate[(size_t)node * GRID_FACTORS_MOST + factor];
}

static uint32_t end_of(uint32_t *parent, uint32_t node)
{
    while (parent[node] != node) {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    return node;
}

/* Nodes that links of other classes connect have the same coordinate in a factor. */
static void find_coordinates(struct factoring *f, unsigned factor, uint32_t *parent)
{
    const struct link_classes *c = &f->classes;
    uint32_t number[CABLING_HOSTS_MOST + 1];

    for (uint32_t node = 0; node < f->net->nodes; node++) {
        parent[node] = node;
        number[node] = CABLING_NONE;
    }
    for (uint32_t i = 0; i < c->links; i++)
        if (c->link[i].class != factor)
            parent[end_of(parent, c->link[i].node[0])] = end_of(parent, c->link[i].node[1]);
    f->size[factor] = 0;
    for (uint32_t node = 0; node < f->net->nodes; node++) {
        if (f->net->degree[node] == 0)
            continue;
        uint32_t end = end_of(parent, node);
        if (number[end] == CABLING_NONE)
            number[end] = f->size[factor]++;
        *coordinate(f, node, factor) = number[end];
    }
}

static uint32_t place(const struct factoring *f, const struct grid *g, uint32_t node)
{
    uint32_t at = 0;

    for (unsigned i = 0; i < g->factors; i++)
        at = at * f->size[i] + *coordinate(f, node, i);
    return at;
}

/* Collects the edges of a factor. Returns whether each of them has a link wherever the factor is repeated, all with the
 * same number of cables. */
static bool collect(const struct factoring *f, unsigned factor, struct factor_graph *graph)
{
    const struct link_classes *c = &f->classes;
    uint32_t edges = 0, links = 0;
    uint8_t count = 0;

    for (uint32_t i = 0; i < c->links; i++) {
        const struct classed_link *l = &c->link[i];
        if (l->class != factor)
            continue;
        uint32_t a = *coordinate(f, l->node[0], factor), b = *coordinate(f, l->node[1], factor);
        if (a == b || (links > 0 && l->count != count))
            return false;
        count = l->count;
        links++;
        edges += !graph->edge[(size_t)a * graph->nodes + b];
        graph->edge[(size_t)a * graph->nodes + b] = graph->edge[(size_t)b * graph->nodes + a] =
            true;
    }
    graph->doubled = count == 2;
    return count <= 2 && (uint64_t)links * graph->nodes == (uint64_t)edges * f->nodes;
}

/* Names a factor, and gives its coordinates the order that the name implies. */
static int name(struct factoring *f, unsigned factor, bool other, struct grid_factor *named,
                struct error *e)
{
    uint32_t n = f->size[factor];
    uint32_t order[CABLING_HOSTS_MOST], at[CABLING_HOSTS_MOST];
    struct factor_graph graph = {.nodes = n};
    int result = 0;

    graph.edge = calloc((size_t)n * n + 1, sizeof *graph.edge);
    if (graph.edge == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for a graph of %u nodes", n);
    if (collect(f, factor, &graph))
        result = factor_graph_name(&graph, other, named, order, e);
    free(graph.edge);
    if (result != 1)
        return result;
    for (uint32_t i = 0; i < n; i++)
        at[order[i]] = i;
    for (uint32_t node = 0; node < f->net->nodes; node++)
        if (f->net->degree[node] > 0)
            *coordinate(f, node, factor) = at[*coordinate(f, node, factor)];
    return 1;
}

/* Puts the hosts into the grid. Returns whether each has a place of its own. */
static bool fill(const struct factoring *f, struct grid *g)
{
    for (uint32_t i = 0; i < g->nodes; i++)
        g->host[i] = CABLING_NONE;
    for (uint32_t node = 0; node < f->net->nodes; node++) {
        if (f->net->degree[node] == 0)
            continue;
        uint32_t at = place(f, g, node);
        if (at >= g->nodes || g->host[at] != CABLING_NONE)
            return false;
        g->host[at] = node;
    }
    return true;
}

/* Whether the sizes of the factors multiply to the number of nodes. */
static bool sizes_fit(const struct factoring *f)
{
    uint64_t product = 1;

    for (unsigned i = 0; i < f->classes.classes && product <= f->nodes; i++)
        product *= f->size[i];
    return product == f->nodes;
}

static int make_grid(struct factoring *f, struct grid *g, bool other, struct error *e)
{
    int named = 1;

    for (unsigned i = 0; i < f->classes.classes; i++)
        find_coordinates(f, i, g->host);
    if (!sizes_fit(f))
        return 0;
    g->factors = f->classes.classes;
    for (unsigned i = 0; i < g->factors && named == 1; i++)
        named = name(f, i, other, &g->factor[i], e);
    return named == 1 ? fill(f, g) : named;
}

int factoring_find(struct grid *g, const struct network *n, bool other, struct error *e)
{
    struct factoring f = {.net = n};
    int result = 0;

    *g = (struct grid){.factors = 0};
    for (uint32_t node = 0; node < n->nodes; node++)
        f.nodes += n->degree[node] > 0;
    if (f.nodes < 2)
        return 0;
    if (link_classes_find(&f.classes, n, e) != 0)
        return -1;
    g->nodes = f.nodes;
    g->host = calloc((size_t)n->nodes + 1, sizeof *g->host);
    f.coordinate = calloc((size_t)n->nodes * GRID_FACTORS_MOST + 1, sizeof *f.coordinate);
    if (g->host == NULL || f.coordinate == NULL)
        result = error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", n->nodes);
    else
        result = make_grid(&f, g, other, e);
    free(f.coordinate);
    link_classes_free(&f.classes);
    if (result != 1) {
        free(g->host);
        g->host = NULL;
    }
    return result;
}
