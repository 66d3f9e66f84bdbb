#include "daemon/schedule/factor.h"

const char *graph_name(enum graph graph)
{
    switch (graph) {
    case GRAPH_RING:
        return "ring";
    case GRAPH_ARRAY:
        return "array";
    case GRAPH_COMPLETE:
        return "complete";
    }
    return "unknown";
}

/* Hops in + direction on a ring. */
static uint32_t offset(const struct factor *f, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : to + f->nodes - from;
}

uint32_t factor_distance(const struct factor *f, uint32_t a, uint32_t b)
{
    uint32_t straight = a < b ? b - a : a - b;

    switch (f->graph) {
    case GRAPH_RING:
        return 2 * straight <= f->nodes ? straight : f->nodes - straight;
    case GRAPH_ARRAY:
        return straight;
    case GRAPH_COMPLETE:
        return straight != 0;
    }
    return 0;
}

uint32_t factor_diameter(const struct factor *f)
{
    return factor_distance(f, 0, f->graph == GRAPH_RING ? f->nodes / 2 : f->nodes - 1);
}

uint64_t factor_status(const struct factor *f, uint32_t node)
{
    uint64_t n = f->nodes, before = node, after = n - 1 - before;

    switch (f->graph) {
    case GRAPH_RING:
        return n * n / 4;
    case GRAPH_ARRAY:
        return before * (before + 1) / 2 + after * (after + 1) / 2;
    case GRAPH_COMPLETE:
        return n - 1;
    }
    return 0;
}

uint64_t factor_least_status(const struct factor *f)
{
    return factor_status(f, f->nodes / 2);
}

uint64_t factor_most_status(const struct factor *f)
{
    return factor_status(f, 0);
}

double factor_average_status(const struct factor *f)
{
    double n = f->nodes;
    return f->graph == GRAPH_ARRAY ? (n * n - 1) / 3 : (double)factor_status(f, 0);
}

double factor_cut(const struct factor *f)
{
    uint64_t n = f->nodes;
    double pairs = (double)(n * n / 4); /* floor(n/2) * ceil(n/2) */

    if (n == 1)
        return 0;
    switch (f->graph) {
    case GRAPH_RING:
        return pairs / 2;
    case GRAPH_ARRAY:
        return pairs;
    case GRAPH_COMPLETE:
        return 1; /* a link for every pair */
    }
    return 0;
}

/* Ring: everything that goes +, then everything that goes -, so that every node sends and takes one
 * message in every step.
 *
 * Array: the nodes at its ends have one neighbour only, so + and - go on side by side. In even
 * steps 2i swaps with 2i+1, in odd steps 2i+1 with 2i+2, and a block moves on in every step once it
 * has begun. Compared with + after -, half of the steps and n-1 blocks less.
 *
 * Complete graph: node i sends to i+1, i+2, ... */
struct walk factor_walk(const struct factor *f, uint32_t from, uint32_t to)
{
    uint32_t forth = offset(f, from, to), back = f->nodes - forth;

    switch (f->graph) {
    case GRAPH_RING:
        if (forth <= f->nodes / 2)
            return (struct walk){.step = 0, .hops = forth, .stride = 1};
        return (struct walk){.step = f->nodes / 2, .hops = back, .stride = -1};
    case GRAPH_ARRAY:
        if (from <= to)
            return (struct walk){.step = from % 2, .hops = forth, .stride = 1};
        return (struct walk){.step = 1 - from % 2, .hops = from - to, .stride = -1};
    case GRAPH_COMPLETE:
        return (struct walk){
            .step = forth == 0 ? 0 : forth - 1, .hops = forth != 0, .stride = (int32_t)forth};
    }
    return (struct walk){0};
}

uint32_t factor_steps(const struct factor *f)
{
    /* An array of odd size: the blocks from its far end have to wait for step 1. */
    bool waits = f->graph == GRAPH_ARRAY && f->nodes > 1 && f->nodes % 2 != 0;
    return f->nodes - 1 + waits;
}

uint64_t factor_blocks(const struct factor *f)
{
    uint64_t n = f->nodes;

    switch (f->graph) {
    case GRAPH_RING:
        return n * n / 4;
    case GRAPH_ARRAY:
        /* n-1 in step 0, 2*(n-1-t) in step t; one more in the odd size's additional step. */
        return (n - 1) * (n - 1) + (n > 1 && n % 2 != 0);
    case GRAPH_COMPLETE:
        return n - 1;
    }
    return 0;
}
