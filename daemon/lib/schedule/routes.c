#include "daemon/lib/schedule/routes.h"

#include <stdlib.h>

#include "proto/text.h"

/* Numbers the classes, and fills the tables. */
static void fill_tables(struct routes *r)
{
    const struct torus *t = r->torus;
    uint32_t at[TORUS_MAX_DIMS];

    if (r->by_xor)
        r->algorithm->xor_period(t, r->period);
    else
        algorithm_period(r->algorithm, t, r->period);
    for (uint32_t node = 0; node < t->nodes; node++) {
        uint32_t first = 0; /* its representative: has a lower number, or is the node itself */

        torus_coordinates(t, node, at);
        for (unsigned i = 0; i < t->dims; i++)
            first = first * t->size[i] + at[i] % r->period[i];
        if (first == node) {
            r->class_of[node] = r->classes;
            r->representative[r->classes++] = node;
        } else {
            r->class_of[node] = r->class_of[first];
        }
        for (unsigned port = 0; port < torus_ports(t); port++)
            r->neighbour[(size_t)node * torus_ports(t) + port] = torus_neighbour(t, node, port);
    }
}

static int open_by(struct routes *r, const struct torus *t, const struct algorithm *a, bool by_xor,
                   struct error *e)
{
    if (algorithm_accepts(a, t, e) != 0)
        return -1;
    *r = (struct routes){
        .torus = t, .algorithm = a, .by_xor = by_xor, .via = TORUS_NO_NODE, .stride = 1};
    r->representative = calloc(t->nodes, sizeof *r->representative);
    r->class_of = calloc(t->nodes, sizeof *r->class_of);
    r->neighbour = calloc((size_t)t->nodes * torus_ports(t), sizeof *r->neighbour);
    r->leg = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *r->leg); /* never 0 bytes */
    if (r->representative == NULL || r->class_of == NULL || r->neighbour == NULL ||
        r->leg == NULL) {
        routes_close(r);
        return error_set(e, ERROR_MEMORY, "out of memory for the routes of %u %s", t->nodes,
                         text_plural(t->nodes, "node", "nodes"));
    }
    fill_tables(r);
    return 0;
}

int routes_open(struct routes *r, const struct torus *t, const struct algorithm *a, struct error *e)
{
    return open_by(r, t, a, false, e);
}

int routes_open_ends(struct routes *r, const struct torus *t, const struct algorithm *a,
                     struct error *e)
{
    return open_by(r, t, a, a->xor_period != NULL && torus_is_plain(t), e);
}

void routes_close(struct routes *r)
{
    free(r->representative);
    free(r->class_of);
    free(r->neighbour);
    free(r->leg);
    *r = (struct routes){0};
}

void routes_seek(struct routes *r, uint32_t source_class, uint32_t destination, uint32_t segment)
{
    r->begun = true;
    r->source_class = source_class;
    r->source = r->representative[source_class];
    r->destination = destination;
    r->segment = segment;
    r->legs = algorithm_route(r->algorithm, r->torus, r->source, destination, segment, r->leg);
}

bool routes_only_via(struct routes *r, uint32_t node, uint32_t *steps)
{
    if (r->algorithm->ordered_steps == NULL || r->classes < r->torus->nodes)
        return false;
    r->via = node;
    *steps = r->algorithm->ordered_steps(r->torus);
    return true;
}

void routes_only_on_lines(struct routes *r)
{
    r->on_lines = r->algorithm->by_lines;
}

/* Sets the range of destinations to the line of the current class's source in a dimension. */
static void begin_line(struct routes *r, unsigned dim)
{
    const struct torus *t = r->torus;
    uint32_t source = r->representative[r->source_class];

    r->line = dim;
    r->stride = 1;
    for (unsigned i = t->dims; --i > dim;)
        r->stride *= t->size[i];
    r->destination = source - source / r->stride % t->size[dim] * r->stride;
    r->last = r->destination + t->size[dim] * r->stride;
}

/* Sets the range of destinations of the current class's source. Blocks go through the dimensions in
 * ascending order: a block on its way has its destination's coordinates in the dimensions that it has
 * finished, and its source's in those that it has not begun. Let i be the last dimension in which
 * the source and `via` differ. A block can only come to `via` if its destination and `via` agree in
 * all dimensions before i. These destinations have consecutive ranks. */
static void begin_source(struct routes *r)
{
    const struct torus *t = r->torus;
    uint32_t block = t->nodes, source = r->representative[r->source_class];

    if (r->on_lines) {
        begin_line(r, 0);
        return;
    }
    r->destination = 0;
    if (r->via != TORUS_NO_NODE) {
        uint32_t stride = t->nodes; /* stride of dimension i in ranks */
        for (unsigned i = 0; i < t->dims; i++) {
            uint32_t outer = stride;
            stride /= t->size[i];
            if (source / stride % t->size[i] != r->via / stride % t->size[i])
                block = outer;
        }
        r->destination = r->via / block * block;
    }
    r->last = r->destination + block;
    r->stride = 1;
}

bool routes_next(struct routes *r)
{
    /* Counts (source_class, destination, segment) up. */
    if (!r->begun) {
        r->begun = true;
        r->source_class = r->segment = 0;
        begin_source(r);
    } else if (++r->segment == r->algorithm->segments) {
        r->segment = 0;
        r->destination += r->stride;
    }
    for (;;) {
        if (r->destination == r->representative[r->source_class])
            r->destination += r->stride;
        if (r->destination < r->last) {
            routes_seek(r, r->source_class, r->destination, r->segment);
            /* Without a detour, a block without a route is an error of the algorithm, for the
             * caller to find. */
            if (r->legs > 0 || r->algorithm->detour == NULL)
                return true;
            r->destination += r->stride; /* no segment of this block has a route */
            continue;
        }
        if (r->on_lines && r->line + 1 < r->torus->dims) {
            begin_line(r, r->line + 1);
            continue;
        }
        if (++r->source_class == r->classes)
            break;
        begin_source(r);
    }
    r->begun = false;
    return false;
}

uint32_t routes_leg_end(const struct routes *r, uint32_t node, const struct leg *leg)
{
    unsigned port = torus_port(r->torus, leg->dim, leg->direction);

    if (leg->hops > 4) /* beyond that, arithmetic is faster than the table */
        return torus_walk(r->torus, node, leg->dim, leg->direction, leg->hops);
    for (uint16_t hop = 0; hop < leg->hops && node != TORUS_NO_NODE; hop++)
        node = routes_neighbour(r, node, port);
    return node;
}

uint32_t routes_move(const struct routes *r, uint32_t node, uint32_t from, uint32_t to)
{
    const struct torus *t = r->torus;
    uint32_t a[TORUS_MAX_DIMS], b[TORUS_MAX_DIMS], c[TORUS_MAX_DIMS];

    if (from == to)
        return node;
    if (r->by_xor)
        return node ^ from ^ to; /* a rank is its coordinates' bits in a row */
    torus_coordinates(t, node, a);
    torus_coordinates(t, from, b);
    torus_coordinates(t, to, c);
    for (unsigned i = 0; i < t->dims; i++)
        a[i] = (a[i] + t->size[i] - b[i] + c[i]) % t->size[i];
    return torus_rank(t, a);
}

struct leg routes_moved_leg(const struct routes *r, const struct leg *leg, uint32_t from,
                            uint32_t to)
{
    const struct torus *t = r->torus;
    uint32_t a[TORUS_MAX_DIMS], b[TORUS_MAX_DIMS];
    struct leg moved = *leg;

    if (!r->by_xor || from == to)
        return moved;
    torus_coordinates(t, from, a);
    torus_coordinates(t, to, b);
    uint32_t end = a[leg->dim] + (uint32_t)(leg->direction * leg->hops);
    uint32_t change = (a[leg->dim] ^ end) & (t->size[leg->dim] - 1);
    int direction = leg->direction;
    moved.hops =
        (uint16_t)torus_shortest(t, leg->dim, b[leg->dim], b[leg->dim] ^ change, &direction);
    moved.direction = (int8_t)direction;
    return moved;
}
