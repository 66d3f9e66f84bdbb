#include "daemon/lib/schedule/factor.h"

const char *factor_kind_name(enum factor_kind kind)
{
    switch (kind) {
    case FACTOR_RING:
        return "ring";
    case FACTOR_ARRAY:
        return "array";
    case FACTOR_COMPLETE:
        return "complete";
    case FACTOR_GRAPH:
        return "graph";
    }
    return "unknown";
}

/* Hops in direction + on a ring. */
static uint32_t offset(const struct factor *f, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : to + f->nodes - from;
}

uint32_t factor_distance(const struct factor *f, uint32_t a, uint32_t b)
{
    uint32_t straight = a < b ? b - a : a - b;

    switch (f->kind) {
    case FACTOR_RING:
        return 2 * straight <= f->nodes ? straight : f->nodes - straight;
    case FACTOR_ARRAY:
        return straight;
    case FACTOR_COMPLETE:
        return straight != 0;
    case FACTOR_GRAPH:
        return graph_distance(f->graph, a, b);
    }
    return 0;
}

uint32_t factor_diameter(const struct factor *f)
{
    if (f->kind == FACTOR_GRAPH)
        return f->graph->diameter;
    return factor_distance(f, 0, f->kind == FACTOR_RING ? f->nodes / 2 : f->nodes - 1);
}

uint64_t factor_status(const struct factor *f, uint32_t node)
{
    uint64_t n = f->nodes, before = node, after = n - 1 - before;

    switch (f->kind) {
    case FACTOR_RING:
        return n * n / 4;
    case FACTOR_ARRAY:
        return before * (before + 1) / 2 + after * (after + 1) / 2;
    case FACTOR_COMPLETE:
        return n - 1;
    case FACTOR_GRAPH:
        return graph_status(f->graph, node);
    }
    return 0;
}

uint64_t factor_least_status(const struct factor *f)
{
    uint64_t least = factor_status(f, f->nodes / 2);

    for (uint32_t node = 0; f->kind == FACTOR_GRAPH && node < f->nodes; node++)
        least = factor_status(f, node) < least ? factor_status(f, node) : least;
    return least;
}

uint64_t factor_most_status(const struct factor *f)
{
    uint64_t most = factor_status(f, 0);

    for (uint32_t node = 0; f->kind == FACTOR_GRAPH && node < f->nodes; node++)
        most = factor_status(f, node) > most ? factor_status(f, node) : most;
    return most;
}

double factor_average_status(const struct factor *f)
{
    double n = f->nodes;

    if (f->kind == FACTOR_GRAPH)
        return (double)graph_hops(f->graph) / n;
    return f->kind == FACTOR_ARRAY ? (n * n - 1) / 3 : (double)factor_status(f, 0);
}

uint64_t factor_links(const struct factor *f)
{
    uint64_t n = f->nodes;

    if (n == 1)
        return 0;
    switch (f->kind) {
    case FACTOR_RING:
        return n;
    case FACTOR_ARRAY:
        return n - 1;
    case FACTOR_COMPLETE:
        return n * (n - 1) / 2;
    case FACTOR_GRAPH:
        return f->graph->links;
    }
    return 0;
}

uint32_t factor_fewest_links(const struct factor *f)
{
    if (f->nodes == 1)
        return 0;
    switch (f->kind) {
    case FACTOR_RING:
        return 2;
    case FACTOR_ARRAY:
        return 1;
    case FACTOR_COMPLETE:
        return f->nodes - 1;
    case FACTOR_GRAPH:
        return f->graph->fewest_links;
    }
    return 0;
}

double factor_cut(const struct factor *f)
{
    uint64_t n = f->nodes;
    double pairs = (double)(n * n / 4); /* floor(n/2) * ceil(n/2) */

    if (n == 1)
        return 0;
    switch (f->kind) {
    case FACTOR_RING:
        return pairs / 2;
    case FACTOR_ARRAY:
        return pairs;
    case FACTOR_COMPLETE:
        return 1; /* a link for every pair */
    case FACTOR_GRAPH:
        return f->graph->least_load;
    }
    return 0;
}

/* Steps at the beginning of an array's exchange in which its middle two nodes swap: 1 if n is even,
 * 0 if n is odd. */
static uint32_t swap_steps(const struct factor *f)
{
    return f->nodes % 2 == 0;
}

/* The walk of a block from x to y > x on an array. The block waits for as many steps as there are
 * nodes behind its destination, and then makes a hop in every step. A block that leaves a node in
 * step t has made a hops and ends b nodes before the end of the array, with a + b = t: at most
 * min(t+1, n-1-t) blocks. */
static struct walk array_walk(const struct factor *f, uint32_t x, uint32_t y)
{
    uint32_t n = f->nodes;
    bool middle = n % 2 == 0 && y == n / 2 && x + 1 == y;
    return (struct walk){
        .step = middle ? 0 : swap_steps(f) + n - 1 - y, .hops = y - x, .stride = 1};
}

/* Ring: first all blocks that go +, then all that go -, so that every node sends and receives one
 * message in every step.
 *
 * Array: likewise; blocks that go - mirror those that go +. A node in the middle sends n-1 blocks
 * of its own, and relays the blocks from one side to the other: floor((n^2-1)/2) in all, and the
 * exchange takes as long. If n is odd, each half takes floor(n^2/4). If n is even, the middle
 * channels are the only ones with n^2/4 blocks, and each carries one of these in the swap at the
 * beginning.
 *
 * Complete graph: node i sends to i+1, i+2, ...
 *
 * Other graphs: graph_exchange.h. */
struct walk factor_walk(const struct factor *f, uint32_t from, uint32_t to)
{
    uint32_t forth = offset(f, from, to), back = f->nodes - forth;
    struct walk walk;

    switch (f->kind) {
    case FACTOR_RING:
        if (forth <= f->nodes / 2)
            return (struct walk){.step = 0, .hops = forth, .stride = 1};
        return (struct walk){.step = f->nodes / 2, .hops = back, .stride = -1};
    case FACTOR_ARRAY:
        if (from <= to)
            return array_walk(f, from, to);
        walk = array_walk(f, f->nodes - 1 - from, f->nodes - 1 - to);
        walk.step += walk.step >= swap_steps(f) ? f->nodes - 1 : 0;
        walk.stride = -1;
        return walk;
    case FACTOR_COMPLETE:
        return (struct walk){
            .step = forth == 0 ? 0 : forth - 1, .hops = forth != 0, .stride = (int32_t)forth};
    case FACTOR_GRAPH:
        return (struct walk){
            .hops = graph_distance(f->graph, from, to),
            .path = graph_exchange_path(graph_exchange(f->graph, GRAPH_ONE_PORT), from, to)};
    }
    return (struct walk){0};
}

bool factor_has_exchange(const struct factor *f)
{
    return f->kind != FACTOR_GRAPH || graph_exchange(f->graph, GRAPH_ONE_PORT) != NULL;
}

uint32_t factor_steps(const struct factor *f)
{
    uint32_t n = f->nodes;

    if (f->kind == FACTOR_GRAPH)
        return factor_has_exchange(f) ? graph_exchange(f->graph, GRAPH_ONE_PORT)->steps : 0;

    if (f->kind != FACTOR_ARRAY || n <= 2)
        return n - 1;
    return swap_steps(f) + 2 * (n - 1);
}

uint64_t factor_blocks(const struct factor *f)
{
    uint64_t n = f->nodes;

    switch (f->kind) {
    case FACTOR_RING:
        return n * n / 4;
    case FACTOR_ARRAY:
        return (n * n - 1) / 2;
    case FACTOR_COMPLETE:
        return n - 1;
    case FACTOR_GRAPH:
        return factor_steps(f);
    }
    return 0;
}
