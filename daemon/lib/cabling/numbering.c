#include "daemon/lib/cabling/grid.h"

#include <stdlib.h>

static bool is_short_line(const struct grid_factor *f)
{
    return f->graph == NULL && !f->wrap && f->size == 2;
}

static uint32_t place_of(const struct grid *g, const uint32_t *at)
{
    uint32_t place = 0;

    for (unsigned i = 0; i < g->factors; i++)
        place = place * g->factor[i].size + at[i];
    return place;
}

static void coordinates(const struct grid *g, uint32_t place, uint32_t *at)
{
    for (unsigned i = g->factors; i-- > 0; place /= g->factor[i].size)
        at[i] = place % g->factor[i].size;
}

/* Whether rank 0 may have this coordinate. */
static bool may_begin(const struct grid_factor *f, uint32_t at)
{
    if (f->graph != NULL)
        return f->graph->kind == GRAPH_KIND_COMPLETE || at == 0;
    return f->wrap || at == 0 || at == f->size - 1;
}

/* The place of the host with the least name that may have rank 0. */
static uint32_t choose_origin(const struct grid *g)
{
    uint32_t best = CABLING_NONE, at[GRID_FACTORS_MOST];

    for (uint32_t place = 0; place < g->nodes; place++) {
        bool may = best == CABLING_NONE || g->host[place] < g->host[best];
        coordinates(g, place, at);
        for (unsigned i = 0; i < g->factors; i++)
            may = may && may_begin(&g->factor[i], at[i]);
        if (may)
            best = place;
    }
    return best == CABLING_NONE ? 0 : best;
}

/* Joins two lines: the places (0,0), (1,0), (1,1) and (0,1) of the two become 0 to 3 of a ring, the last factor. */
static int join(struct grid *g, unsigned a, unsigned b, struct error *e)
{
    static const uint32_t first[4] = {0, 1, 1, 0}, second[4] = {0, 0, 1, 1};
    struct grid joined = {.nodes = g->nodes};
    uint32_t at[GRID_FACTORS_MOST], was[GRID_FACTORS_MOST];

    joined.host = calloc(g->nodes, sizeof *joined.host);
    if (joined.host == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for %u ranks", g->nodes);
    for (unsigned i = 0; i < g->factors; i++)
        if (i != a && i != b)
            joined.factor[joined.factors++] = g->factor[i];
    joined.factor[joined.factors++] = (struct grid_factor){.size = 4, .wrap = true};
    for (uint32_t place = 0; place < g->nodes; place++) {
        unsigned used = 0;
        coordinates(&joined, place, at);
        for (unsigned i = 0; i < g->factors; i++)
            if (i != a && i != b)
                was[i] = at[used++];
        was[a] = first[at[used]];
        was[b] = second[at[used]];
        joined.host[place] = g->host[place_of(g, was)];
    }
    free(g->host);
    *g = joined;
    return 0;
}

/* The host one step from the origin along a line of two, or along two such lines. */
static uint32_t beside(const struct grid *g, uint32_t origin, unsigned a, unsigned b)
{
    uint32_t at[GRID_FACTORS_MOST];

    coordinates(g, origin, at);
    at[a] ^= 1;
    if (b != a)
        at[b] ^= 1;
    return g->host[place_of(g, at)];
}

int numbering_join_lines(struct grid *g, struct error *e)
{
    for (;;) {
        uint32_t origin = choose_origin(g);
        unsigned first = g->factors, second = g->factors;
        for (unsigned i = 0; i < g->factors; i++)
            if (is_short_line(&g->factor[i]) &&
                (first == g->factors || beside(g, origin, i, i) < beside(g, origin, first, first)))
                first = i;
        for (unsigned i = 0; i < g->factors; i++)
            if (is_short_line(&g->factor[i]) && i != first &&
                (second == g->factors ||
                 beside(g, origin, first, i) < beside(g, origin, first, second)))
                second = i;
        if (second == g->factors)
            return 0;
        if (join(g, first, second, e) != 0)
            return -1;
    }
}

/* Where each coordinate of a factor comes from. */
struct turned {
    uint32_t from[CABLING_HOSTS_MOST];
};

static void sort_by_host(uint32_t *from, uint32_t count, const uint32_t *host, uint32_t stride)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && host[from[k] * stride] < host[from[k - 1] * stride]; k--) {
            uint32_t moved = from[k];
            from[k] = from[k - 1];
            from[k - 1] = moved;
        }
}

/* Turns a factor so that the origin has coordinate 0, and the names rise along the factor as early as possible. */
static void turn(const struct grid *g, unsigned factor, uint32_t origin, struct turned *t)
{
    const struct grid_factor *f = &g->factor[factor];
    uint32_t n = f->size, stride = grid_stride(g, factor), at = origin / stride % n;
    const uint32_t *host = g->host + (origin - at * stride); /* along the factor, in strides */
    bool forward = true;

    if (f->graph == NULL) {
        uint32_t next = (at + 1) % n, last = (at + n - 1) % n;
        forward = f->wrap ? host[next * stride] <= host[last * stride] : at == 0;
    }
    for (uint32_t i = 0; i < n; i++)
        t->from[i] = f->graph != NULL ? i : (at + (forward ? i : n - i)) % n;
    if (f->graph != NULL && f->graph->kind == GRAPH_KIND_COMPLETE)
        sort_by_host(t->from, n, host, stride);
    if (f->graph != NULL && f->graph->kind == GRAPH_KIND_STAR)
        sort_by_host(t->from + 1, n - 1, host, stride);
}

static bool same_factor(const struct grid_factor *f, const struct torus *t, unsigned dim)
{
    return f->size == t->size[dim] && f->wrap == t->wrap[dim] && f->graph == t->graph[dim];
}

/* Puts the factors in order, the last dimension first: next is the one along which the origin has the least
 * neighbour. */
static void order_factors(const struct grid *g, uint32_t origin, const struct torus *wanted,
                          const struct turned *turned, unsigned *order)
{
    bool taken[GRID_FACTORS_MOST] = {false};

    for (unsigned dim = g->factors; dim-- > 0;) {
        uint32_t least = CABLING_NONE;
        unsigned best = g->factors;
        for (unsigned i = 0; i < g->factors; i++) {
            uint32_t stride = grid_stride(g, i), at = origin / stride % g->factor[i].size;
            uint32_t second = g->factor[i].size > 1 ? turned[i].from[1] : at;
            uint32_t host = g->host[origin - at * stride + second * stride];
            if (taken[i] || (wanted != NULL && !same_factor(&g->factor[i], wanted, dim)) ||
                (best < g->factors && host >= least))
                continue;
            best = i;
            least = host;
        }
        order[dim] = best;
        taken[best] = true;
    }
}

static int number(const struct grid *g, const struct turned *turned, const unsigned *order,
                  struct torus *t, uint32_t *host_at, struct error *e)
{
    uint32_t at[GRID_FACTORS_MOST], was[GRID_FACTORS_MOST];

    *t = (struct torus){.nodes = 1};
    for (unsigned dim = 0; dim < g->factors; dim++) {
        const struct grid_factor *f = &g->factor[order[dim]];
        if (torus_append(t, f->size, f->wrap, f->graph) != 0)
            return error_set(e, ERROR_REFUSED,
                             "the cables make a network of more than %u dimensions or %u ports",
                             TORUS_MAX_DIMS, TORUS_MAX_PORTS);
    }
    for (uint32_t rank = 0; rank < g->nodes; rank++) {
        torus_coordinates(t, rank, at);
        for (unsigned dim = 0; dim < g->factors; dim++)
            was[order[dim]] = turned[order[dim]].from[at[dim]];
        host_at[rank] = g->host[place_of(g, was)];
    }
    return 0;
}

int numbering_choose(const struct grid *g, const struct torus *wanted, struct torus *t,
                     uint32_t *host_at, struct error *e)
{
    struct turned *turned = calloc(GRID_FACTORS_MOST, sizeof *turned);
    uint32_t origin = choose_origin(g);
    unsigned order[GRID_FACTORS_MOST];
    int result;

    if (turned == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for %u ranks", g->nodes);
    for (unsigned i = 0; i < g->factors; i++)
        turn(g, i, origin, &turned[i]);
    order_factors(g, origin, wanted, turned, order);
    result = number(g, turned, order, t, host_at, e);
    free(turned);
    return result;
}
