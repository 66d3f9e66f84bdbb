#include "daemon/lib/schedule/algorithms/whole.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "daemon/lib/schedule/product.h"

/* How the hops of blocks depend on the source: only the offset matters, or the offset and the parity of
 * coordinates in rings of even size, or everything. */
enum symmetry { BY_OFFSET, BY_PARITY, NONE };

struct whole {
    struct torus torus; /* these dimensions alone */
    const struct graph *graph;
    struct graph_exchange *exchange;
    uint8_t *port; /* node * directions + direction of the graph: a port of the torus */
    enum symmetry symmetry;
    struct whole *next;
};

/* The list only grows at its beginning, and is read without a lock. */
static struct whole *_Atomic wholes;

static void whole_free(struct whole *w)
{
    graph_drop(w->graph);
    graph_exchange_free(w->exchange);
    free(w->port);
    free(w);
}

/* Sets *part to these dimensions. Returns false if they are too large. */
static bool take_part(const struct torus *t, const uint8_t *dim, unsigned dims, struct torus *part)
{
    *part = (struct torus){.nodes = 1};
    for (unsigned i = 0; i < dims; i++) {
        const struct graph *g = t->graph[dim[i]];
        if (g != NULL && g->users > 0)
            return false; /* may be freed */
        if (torus_append(part, t->size[dim[i]], t->wrap[dim[i]], g) != 0)
            return false;
    }
    if (part->nodes < 2 || part->nodes > GRAPH_NODES_MOST)
        return false;
    struct product p = product_of_torus(part);
    return product_average_status(&p) * part->nodes <= GRAPH_EXCHANGE_HOPS_MOST;
}

static const struct whole *find(const struct whole *w, const struct torus *part)
{
    while (w != NULL && !torus_equal(&w->torus, part))
        w = w->next;
    return w;
}

/* The first port of a node that leads to another node; torus_ports() if none does. */
static unsigned port_to(const struct torus *t, uint32_t node, uint32_t to)
{
    unsigned port = 0;

    while (port < torus_ports(t) && torus_neighbour(t, node, port) != to)
        port++;
    return port;
}

static const struct graph *make_graph(const struct torus *t)
{
    uint32_t *edge = calloc((size_t)t->nodes * torus_ports(t), sizeof *edge);
    const struct graph *g = NULL;
    size_t count = 0;

    for (uint32_t node = 0; edge != NULL && node < t->nodes; node++)
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t there = torus_neighbour(t, node, port);
            if (there == TORUS_NO_NODE || there < node || port_to(t, node, there) != port)
                continue;
            edge[2 * count] = node;
            edge[2 * count++ + 1] = there;
        }
    if (edge != NULL)
        g = graph_new(edge, count, NULL);
    free(edge);
    return g;
}

static bool moves_in(const struct torus *t, unsigned dim)
{
    return t->wrap[dim] || t->size[dim] == 2 || (t->graph[dim] != NULL && t->graph[dim]->moves);
}

static bool is_even_ring(const struct torus *t, unsigned dim)
{
    return t->wrap[dim] && t->size[dim] % 2 == 0;
}

/* The moves of all nodes, as graph_group() has them. NULL if a factor has other moves, or without
 * memory. */
static uint16_t *make_moves(const struct torus *t, enum symmetry symmetry)
{
    uint32_t a[TORUS_MAX_DIMS], b[TORUS_MAX_DIMS];
    uint16_t *moves;

    for (unsigned i = 0; i < t->dims; i++)
        if (!moves_in(t, i))
            return NULL;
    moves = calloc((size_t)t->nodes * t->nodes, sizeof *moves);
    for (uint32_t s = 0; moves != NULL && s < t->nodes; s++)
        for (uint32_t node = 0; node < t->nodes; node++) {
            torus_coordinates(t, s, a);
            torus_coordinates(t, node, b);
            for (unsigned i = 0; i < t->dims; i++) {
                bool mirrored = symmetry == BY_PARITY && is_even_ring(t, i) && a[i] % 2 != 0;
                b[i] = (a[i] + (mirrored ? t->size[i] - b[i] : b[i])) % t->size[i];
            }
            moves[(size_t)s * t->nodes + node] = (uint16_t)torus_rank(t, b);
        }
    return moves;
}

/* Seeks an exchange with this symmetry, and keeps it if it has fewer steps than the one before. */
static void seek(struct whole *w, enum symmetry symmetry, uint32_t least)
{
    uint16_t *moves = NULL;

    if (w->exchange != NULL && w->exchange->steps <= least)
        return;
    if (symmetry != NONE && (w->graph->moves || (moves = make_moves(&w->torus, symmetry)) == NULL))
        return;
    struct graph_exchange *x = graph_exchange_new(w->graph, moves, least);
    free(moves);
    if (x == NULL || (w->exchange != NULL && w->exchange->steps <= x->steps)) {
        graph_exchange_free(x);
        return;
    }
    graph_exchange_free(w->exchange);
    w->exchange = x;
    w->symmetry = symmetry;
}

/* The fewest steps that an exchange could have: a ring of 2 is one link here, as a line is. */
static uint32_t least_steps(const struct torus *t)
{
    struct torus lines = *t;

    for (unsigned i = 0; i < t->dims; i++)
        lines.wrap[i] = t->wrap[i] && t->size[i] > 2;
    return (uint32_t)ceil(torus_bound_all_port(&lines));
}

static bool fill(struct whole *w)
{
    const struct graph *g = w->graph = make_graph(&w->torus);
    uint32_t least = least_steps(&w->torus);

    if (g == NULL)
        return false;
    for (enum symmetry symmetry = BY_OFFSET; symmetry <= NONE; symmetry++)
        seek(w, symmetry, least);
    w->port = calloc((size_t)g->nodes * g->directions, sizeof *w->port);
    if (w->exchange == NULL || w->port == NULL)
        return false;
    for (uint32_t node = 0; node < g->nodes; node++)
        for (unsigned i = 0; i < g->directions; i++)
            if (graph_neighbour(g, node, i) != GRAPH_NO_NODE)
                w->port[(size_t)node * g->directions + i] =
                    (uint8_t)port_to(&w->torus, node, graph_neighbour(g, node, i));
    return true;
}

const struct whole *whole_exchange(const struct torus *t, const uint8_t *dim, unsigned dims)
{
    struct whole *first = atomic_load(&wholes), *w;
    const struct whole *found;
    struct torus part;

    if (!take_part(t, dim, dims, &part))
        return NULL;
    if ((found = find(first, &part)) != NULL || (w = calloc(1, sizeof *w)) == NULL)
        return found;
    w->torus = part;
    if (!fill(w)) {
        whole_free(w);
        return NULL;
    }
    do { /* another thread may have made the same exchange */
        if ((found = find(first, &part)) != NULL) {
            whole_free(w);
            return found;
        }
        w->next = first;
    } while (!atomic_compare_exchange_weak(&wholes, &first, w));
    return w;
}

uint32_t whole_steps(const struct whole *w)
{
    return w->exchange->steps;
}

void whole_period(const struct whole *w, const uint8_t *dim, uint32_t *period)
{
    uint32_t own[TORUS_MAX_DIMS];

    torus_full_period(&w->torus, own);
    if (w->symmetry == NONE)
        torus_no_period(&w->torus, own);
    for (unsigned i = 0; i < w->torus.dims; i++)
        period[dim[i]] = w->symmetry == BY_PARITY && is_even_ring(&w->torus, i) ? 2 : own[i];
}

uint32_t whole_route(const struct whole *w, const uint8_t *dim, const uint32_t *from,
                     const uint32_t *to, uint32_t step, struct leg *legs)
{
    uint32_t a[TORUS_MAX_DIMS] = {0}, b[TORUS_MAX_DIMS] = {0};

    for (unsigned i = 0; i < w->torus.dims; i++) {
        a[i] = from[dim[i]];
        b[i] = to[dim[i]];
    }
    uint32_t node = torus_rank(&w->torus, a), end = torus_rank(&w->torus, b);
    uint32_t hops = graph_distance(w->graph, node, end);
    const struct graph_hop *path = graph_exchange_path(w->exchange, node, end);

    for (uint32_t i = 0; i < hops; i++) {
        unsigned port = w->port[(size_t)node * w->graph->directions + path[i].direction];
        legs[i] = (struct leg){.step = step + path[i].step,
                               .hops = 1,
                               .dim = dim[torus_port_dim(&w->torus, port)],
                               .direction = (int8_t)torus_port_direction(&w->torus, port)};
        node = graph_neighbour(w->graph, node, path[i].direction);
    }
    return hops;
}
