#include "client/theory/least_cut.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/work.h"

struct flow {
    const struct graph *graph;
    bool *used; /* by node * directions + direction: a unit takes this channel */
    uint8_t *
        arrival; /* by node: the direction, at the previous node, of the channel through which the search came */
    uint32_t *before, *queue;
};

/* Whether a unit can go from a node in a direction: the channel is free, or a unit comes back by its
 * link, and both then stop. */
static bool is_open(const struct flow *f, uint32_t node, unsigned direction)
{
    const struct graph *g = f->graph;
    uint32_t there = graph_neighbour(g, node, direction);

    return there != GRAPH_NO_NODE && f->before[there] == GRAPH_NO_NODE &&
           !f->used[node * g->directions + direction];
}

static bool search(struct flow *f, uint32_t from, uint32_t to)
{
    const struct graph *g = f->graph;
    uint32_t known = 0;

    for (uint32_t node = 0; node < g->nodes; node++)
        f->before[node] = GRAPH_NO_NODE;
    f->before[from] = from;
    f->queue[known++] = from;
    for (uint32_t i = 0; i < known && f->before[to] == GRAPH_NO_NODE; i++)
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t there = graph_neighbour(g, f->queue[i], direction);
            if (!is_open(f, f->queue[i], direction))
                continue;
            f->before[there] = f->queue[i];
            f->arrival[there] = (uint8_t)direction;
            f->queue[known++] = there;
        }
    return f->before[to] != GRAPH_NO_NODE;
}

/* The units that flow from one node to another, at most `most`. */
static uint32_t count_flow(struct flow *f, uint32_t from, uint32_t to, uint32_t most)
{
    const struct graph *g = f->graph;
    uint32_t units = 0;

    memset(f->used, 0, (size_t)g->nodes * g->directions);
    for (; units < most && search(f, from, to); units++)
        for (uint32_t at = to; at != from; at = f->before[at]) {
            unsigned out = f->arrival[at];
            bool *back = &f->used[at * g->directions + g->opposite[out]];
            if (*back)
                *back = false;
            else
                f->used[f->before[at] * g->directions + out] = true;
        }
    return units;
}

/* If a cut has fewer links than every node, there is a node on each side of it whose neighbours are all
 * on that side, too. So a set of nodes that contains a neighbour of every other node has nodes on both sides, and only
 * flows between these have to be counted. `covered` is cleared. */
static uint32_t graph_least_cut(struct flow *f, bool *covered)
{
    const struct graph *g = f->graph;
    uint32_t least = g->fewest_links, first = GRAPH_NO_NODE;

    for (uint32_t node = 0; node < g->nodes; node++) {
        if (covered[node])
            continue;
        watch_tell((double)node / g->nodes);
        covered[node] = true;
        for (unsigned direction = 0; direction < g->directions; direction++)
            if (graph_neighbour(g, node, direction) != GRAPH_NO_NODE)
                covered[graph_neighbour(g, node, direction)] = true;
        if (first == GRAPH_NO_NODE)
            first = node;
        else
            least = count_flow(f, first, node, least);
    }
    return least;
}

static int cut_of_graph(const struct graph *g, uint32_t *links, struct error *e)
{
    struct flow f = {.graph = g,
                     .used = calloc((size_t)g->nodes * g->directions, sizeof *f.used),
                     .arrival = calloc(g->nodes, sizeof *f.arrival),
                     .before = calloc(g->nodes, sizeof *f.before),
                     .queue = calloc(g->nodes, sizeof *f.queue)};
    bool *covered = calloc(g->nodes, sizeof *covered);
    bool enough = f.used != NULL && f.arrival != NULL && f.before != NULL && f.queue != NULL &&
                  covered != NULL;

    if (enough)
        *links = graph_least_cut(&f, covered);
    free(f.used);
    free(f.arrival);
    free(f.before);
    free(f.queue);
    free(covered);
    return enough ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the cuts of a graph");
}

int least_cut(const struct product *p, uint32_t *links, struct error *e)
{
    uint64_t least = UINT64_MAX, fewest = 0;

    for (unsigned i = 0; i < p->dims; i++) {
        const struct factor *f = &p->factor[i];
        uint32_t own = factor_fewest_links(f); /* of rings, arrays and complete graphs */
        if (f->nodes == 1)
            continue;
        fewest += own;
        if (f->kind == FACTOR_GRAPH && cut_of_graph(f->graph, &own, e) != 0)
            return -1;
        uint64_t copies = p->nodes / f->nodes;
        least = own * copies < least ? own * copies : least;
    }
    *links = (uint32_t)(fewest < least ? fewest : least);
    return 0;
}
