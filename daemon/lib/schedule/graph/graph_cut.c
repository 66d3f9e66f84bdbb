#include <stdlib.h>

#include "daemon/lib/schedule/graph/graph.h"

#define CLIMBED 16u /* balls from which single nodes are moved: the best ones */

struct part {
    const struct graph *graph;
    bool *inside;
    uint32_t inner, outward; /* nodes inside; links to nodes outside */
};

static double value(const struct part *p, uint32_t inner, uint32_t outward)
{
    return outward > 0 ? (double)inner * (p->graph->nodes - inner) / outward : 0;
}

static uint32_t links_to(const struct part *p, uint32_t node, bool inside)
{
    uint32_t count = 0;

    for (unsigned direction = 0; direction < p->graph->directions; direction++) {
        uint32_t there = graph_neighbour(p->graph, node, direction);
        count += there != GRAPH_NO_NODE && p->inside[there] == inside;
    }
    return count;
}

static void toggle(struct part *p, uint32_t node)
{
    bool was = p->inside[node];

    p->outward = p->outward + links_to(p, node, was) - links_to(p, node, !was);
    p->inner = was ? p->inner - 1 : p->inner + 1;
    p->inside[node] = !was;
}

/* Every part that does not have the last node, in the order of a Gray code: each differs from the
 * one before it by one node. */
static double try_all(struct part *p)
{
    double best = 0;

    for (uint32_t i = 1; i < 1u << (p->graph->nodes - 1); i++) {
        toggle(p, (uint32_t)__builtin_ctz(i));
        double now = value(p, p->inner, p->outward);
        best = now > best ? now : best;
    }
    return best;
}

static double climb(struct part *p)
{
    double now = value(p, p->inner, p->outward);
    bool better = true;

    while (better) {
        better = false;
        for (uint32_t node = 0; node < p->graph->nodes; node++) {
            bool was = p->inside[node];
            uint32_t inner = was ? p->inner - 1 : p->inner + 1;
            uint32_t outward = p->outward + links_to(p, node, was) - links_to(p, node, !was);
            if (value(p, inner, outward) <= now)
                continue;
            toggle(p, node);
            now = value(p, p->inner, p->outward);
            better = true;
        }
    }
    return now;
}

struct ball {
    uint32_t centre, radius;
    double value;
};

/* Keeps the best balls in order, at most CLIMBED. */
static void remember(struct ball *best, unsigned *count, struct ball one)
{
    bool full = *count == CLIMBED;
    unsigned at = full ? CLIMBED - 1 : (*count)++;

    if (full && best[at].value >= one.value)
        return;
    for (; at > 0 && best[at - 1].value < one.value; at--)
        best[at] = best[at - 1];
    best[at] = one;
}

/* All balls around a node, which grow node by node. `order` has room for all nodes. */
static void try_balls(struct part *p, uint32_t centre, uint32_t *order, struct ball *best,
                      unsigned *count)
{
    const struct graph *g = p->graph;
    uint32_t known = 0;

    for (uint32_t node = 0; node < g->nodes; node++)
        p->inside[node] = false;
    p->inner = p->outward = 0;
    order[known++] = centre;
    toggle(p, centre);
    for (uint32_t i = 0; i < known; i++) {
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t there = graph_neighbour(g, order[i], direction);
            if (there == GRAPH_NO_NODE || p->inside[there])
                continue;
            uint32_t radius = graph_distance(g, centre, there);
            if (radius > graph_distance(g, centre, order[known - 1]))
                remember(best, count,
                         (struct ball){centre, radius - 1, value(p, p->inner, p->outward)});
            order[known++] = there;
            toggle(p, there);
        }
    }
}

static double climb_from(struct part *p, const struct ball *ball)
{
    p->inner = p->outward = 0;
    for (uint32_t node = 0; node < p->graph->nodes; node++)
        p->inside[node] = false;
    for (uint32_t node = 0; node < p->graph->nodes; node++)
        if (graph_distance(p->graph, ball->centre, node) <= ball->radius)
            toggle(p, node);
    return climb(p);
}

static int search(struct part *p, double *cut)
{
    uint32_t *order = calloc(p->graph->nodes, sizeof *order);
    struct ball best[CLIMBED];
    unsigned count = 0;

    if (order == NULL)
        return -1;
    for (uint32_t centre = 0; centre < p->graph->nodes; centre++)
        try_balls(p, centre, order, best, &count);
    for (unsigned i = 0; i < count; i++) {
        double found = climb_from(p, &best[i]);
        *cut = found > *cut ? found : *cut;
    }
    free(order);
    return 0;
}

int graph_cut(const struct graph *g, double *cut)
{
    struct part p = {.graph = g, .inside = calloc(g->nodes, sizeof *p.inside)};
    int result = 0;

    if (p.inside == NULL)
        return -1;
    *cut = 0;
    if (g->nodes <= GRAPH_CUT_EXACT)
        *cut = try_all(&p);
    else
        result = search(&p, cut);
    free(p.inside);
    return result;
}
