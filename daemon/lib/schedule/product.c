#include "daemon/lib/schedule/product.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/schedule/factor_text.h"

/* Appends a factor as many times as its power says. */
static int append(const char *text, struct product *p, const struct factor *f, uint32_t times,
                  struct error *e)
{
    for (; times > 0; times--) {
        if (p->dims == PRODUCT_MAX_DIMS)
            return error_set(e, ERROR_USAGE, "network \"%.64s\" has more than %d dimensions", text,
                             PRODUCT_MAX_DIMS);
        if (f->nodes > TORUS_MAX_NODES / p->nodes)
            return error_set(e, ERROR_USAGE, "network \"%.64s\" has more than %u nodes", text,
                             TORUS_MAX_NODES);
        p->nodes *= f->nodes;
        p->factor[p->dims++] = *f;
    }
    return 0;
}

int product_parse(struct product *p, const char *text, struct error *e)
{
    struct factor_text r = {
        .what = "network", .text = text, .at = text + strspn(text, " "), .files = true};
    struct product result = {.nodes = 1};
    struct factor f;
    uint32_t times;

    do {
        if (factor_text_read(&r, &f, &times, e) != 0 || append(text, &result, &f, times, e) != 0)
            return -1;
    } while (factor_text_goes_on(&r));
    r.at += strspn(r.at, " ");
    if (factor_text_end(&r, e) != 0)
        return -1;
    *p = result;
    return 0;
}

char *product_format(const struct product *p, char *text)
{
    size_t used = 0;

    for (unsigned i = 0, same; i < p->dims; i += same) {
        const struct factor *f = &p->factor[i];
        for (same = 1; i + same < p->dims; same++)
            if (f[same].kind != f->kind || f[same].nodes != f->nodes || f[same].graph != f->graph)
                break;
        used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "%s", i == 0 ? "" : " x ");
        if (f->kind == FACTOR_GRAPH)
            used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "%s", f->graph->text);
        else
            used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "%s:%u",
                                     factor_kind_name(f->kind), f->nodes);
        if (same > 1)
            used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "^%u", same);
    }
    return text;
}

struct product product_of_torus(const struct torus *t)
{
    struct product p = {.dims = t->dims, .nodes = t->nodes};
    for (unsigned i = 0; i < t->dims; i++) {
        const struct graph *g = t->graph[i];
        enum factor_kind plain = t->wrap[i] ? FACTOR_RING : FACTOR_ARRAY;
        p.factor[i] = (struct factor){.kind = plain, .nodes = t->size[i]};
        if (g != NULL && g->kind == GRAPH_KIND_COMPLETE)
            p.factor[i].kind = FACTOR_COMPLETE;
        else if (g != NULL)
            p.factor[i] = (struct factor){.kind = FACTOR_GRAPH, .nodes = g->nodes, .graph = g};
    }
    return p;
}

/* The number of copies of dimension i: N/n_i. */
static uint32_t copies(const struct product *p, unsigned i)
{
    return p->nodes / p->factor[i].nodes;
}

uint32_t product_distance(const struct product *p, uint32_t a, uint32_t b)
{
    uint32_t hops = 0;
    for (unsigned i = p->dims; i-- > 0;) {
        uint32_t n = p->factor[i].nodes;
        hops += factor_distance(&p->factor[i], a % n, b % n);
        a /= n;
        b /= n;
    }
    return hops;
}

uint32_t product_diameter(const struct product *p)
{
    uint32_t hops = 0;
    for (unsigned i = 0; i < p->dims; i++)
        hops += factor_diameter(&p->factor[i]);
    return hops;
}

uint64_t product_status(const struct product *p, uint32_t node)
{
    uint64_t sum = 0;
    for (unsigned i = p->dims; i-- > 0; node /= p->factor[i].nodes)
        sum += copies(p, i) * factor_status(&p->factor[i], node % p->factor[i].nodes);
    return sum;
}

uint64_t product_least_status(const struct product *p)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->dims; i++)
        sum += copies(p, i) * factor_least_status(&p->factor[i]);
    return sum;
}

uint64_t product_most_status(const struct product *p)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->dims; i++)
        sum += copies(p, i) * factor_most_status(&p->factor[i]);
    return sum;
}

double product_average_status(const struct product *p)
{
    double sum = 0;
    for (unsigned i = 0; i < p->dims; i++)
        sum += copies(p, i) * factor_average_status(&p->factor[i]);
    return sum;
}

double product_average_distance(const struct product *p)
{
    return p->nodes > 1 ? product_average_status(p) / (p->nodes - 1) : 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double product_bound_all_port(const struct product *p)
{
    double bound = 0;
    for (unsigned i = 0; i < p->dims; i++)
        bound = larger(bound, copies(p, i) * factor_cut(&p->factor[i]));
    return bound;
}

double product_bound_one_port(const struct product *p)
{
    return larger(product_bound_all_port(p), p->nodes - 1);
}

/* The number of links of a node with the fewest. */
static double fewest_links(const struct product *p)
{
    double links = 0;

    for (unsigned i = 0; i < p->dims; i++)
        links += factor_fewest_links(&p->factor[i]);
    return links;
}

double product_bound_reduce(const struct product *p)
{
    return p->nodes == 1 ? 0 : 1 / fewest_links(p);
}

double product_bound_reduce_scatter(const struct product *p)
{
    if (p->nodes == 1)
        return 0;
    return (p->nodes - 1) / (p->nodes * fewest_links(p));
}

double product_bound_allreduce(const struct product *p)
{
    double channels = 0;

    if (p->nodes == 1)
        return 0;
    for (unsigned i = 0; i < p->dims; i++)
        channels += 2 * copies(p, i) * (double)factor_links(&p->factor[i]);
    return larger(2.0 * (p->nodes - 1) / channels, product_bound_reduce(p));
}

bool product_has_exchange(const struct product *p)
{
    bool has = true;

    for (unsigned i = 0; i < p->dims; i++)
        has = has && factor_has_exchange(&p->factor[i]);
    return has;
}

const char *product_algorithm_name(enum product_algorithm a)
{
    switch (a) {
    case PRODUCT_A1:
        return "a1";
    case PRODUCT_A2:
        return "a2";
    }
    return "unknown";
}

/* A1: the hops of all messages between two nodes of dimension i, and those of the messages before
 * the one from `from` to `to`. */
static uint64_t all_hops(const struct factor *f)
{
    uint64_t n = f->nodes, sum = 0;

    if (f->kind == FACTOR_RING || f->kind == FACTOR_COMPLETE)
        return n * factor_status(f, 0);
    if (f->kind == FACTOR_GRAPH)
        return graph_exchange(f->graph, GRAPH_ONE_PORT)->hops_before[n];
    for (uint32_t node = 0; node < n; node++)
        sum += factor_status(f, node);
    return sum;
}

static uint64_t hops_before(const struct factor *f, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;

    if (f->kind == FACTOR_GRAPH)
        sum = graph_exchange(f->graph, GRAPH_ONE_PORT)->hops_before[from];
    for (uint32_t node = 0; node < from && f->kind != FACTOR_GRAPH; node++)
        sum += factor_status(f, node);
    for (uint32_t node = 0; node < to; node++)
        sum += factor_distance(f, from, node);
    return sum;
}

/* A1: the steps (or, with `blocks`, the blocks) of an exchange in the first `dims` dimensions. */
static uint64_t cost_of_a1(const struct product *p, unsigned dims,
                           uint64_t (*alone)(const struct factor *), bool blocks)
{
    uint64_t nodes = 1, cost = 0;

    for (unsigned i = 0; i < dims; i++) {
        const struct factor *f = &p->factor[i];
        if (nodes == 1)
            cost = alone(f);
        else
            cost = all_hops(f) * (blocks ? nodes : 1) + f->nodes * cost;
        nodes *= f->nodes;
    }
    return cost;
}

static uint64_t steps_alone(const struct factor *f)
{
    return factor_steps(f);
}

static unsigned route_by_a1(const struct product *p, uint32_t source, uint32_t destination,
                            struct product_walk *walks)
{
    uint32_t begin = 0, before = p->nodes;
    unsigned count = 0;

    for (unsigned i = p->dims; i-- > 0;) {
        const struct factor *f = &p->factor[i];
        uint32_t from = source % f->nodes, to = destination % f->nodes;
        struct walk walk = factor_walk(f, from, to);

        before /= f->nodes;
        walk.step = begin + (before > 1 ? (uint32_t)hops_before(f, from, to) : walk.step);
        walk.path = before > 1 ? NULL : walk.path;
        if (walk.hops > 0)
            walks[count++] = (struct product_walk){walk, i, from, to};
        if (before == 1)
            break;
        begin += (uint32_t)(all_hops(f) + from * cost_of_a1(p, i, steps_alone, false));
        source /= f->nodes;
        destination /= f->nodes;
    }
    return count;
}

static unsigned route_by_a2(const struct product *p, uint32_t source, uint32_t destination,
                            struct product_walk *walks)
{
    uint32_t begin = 0;
    unsigned count = 0;

    for (unsigned i = p->dims; i-- > 0;) {
        const struct factor *f = &p->factor[i];
        uint32_t from = source % f->nodes, to = destination % f->nodes;
        struct walk walk = factor_walk(f, from, to);
        walk.step += begin;
        if (walk.hops > 0)
            walks[count++] = (struct product_walk){walk, i, from, to};
        begin += factor_steps(f);
        source /= f->nodes;
        destination /= f->nodes;
    }
    return count;
}

unsigned product_route(const struct product *p, enum product_algorithm a, uint32_t source,
                       uint32_t destination, struct product_walk *walks)
{
    return a == PRODUCT_A1 ? route_by_a1(p, source, destination, walks)
                           : route_by_a2(p, source, destination, walks);
}

uint64_t product_steps(const struct product *p, enum product_algorithm a)
{
    uint64_t steps = 0;

    if (a == PRODUCT_A1)
        return cost_of_a1(p, p->dims, steps_alone, false);
    for (unsigned i = 0; i < p->dims; i++)
        steps += factor_steps(&p->factor[i]);
    return steps;
}

uint64_t product_blocks(const struct product *p, enum product_algorithm a)
{
    uint64_t blocks = 0;

    if (a == PRODUCT_A1)
        return cost_of_a1(p, p->dims, factor_blocks, true);
    for (unsigned i = 0; i < p->dims; i++)
        blocks += copies(p, i) * factor_blocks(&p->factor[i]);
    return blocks;
}
