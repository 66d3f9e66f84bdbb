#include "daemon/schedule/routes.h"

#include <stdlib.h>

/* Numbers the classes, and tables what a walk over the torus asks for at every hop. */
static void fill_tables(struct routes *r)
{
    const struct torus *t = r->torus;
    uint32_t period[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];

    r->algorithm->period(t, period);
    for (uint32_t node = 0; node < t->nodes; node++) {
        uint32_t first = 0; /* its representative: always a node already numbered, or itself */

        torus_coordinates(t, node, at);
        for (unsigned i = 0; i < t->dims; i++)
            first = first * t->size[i] + at[i] % period[i];
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

int routes_open(struct routes *r, const struct torus *t, const struct algorithm *a, struct error *e)
{
    if (a->accepts(t, e) != 0)
        return -1;
    *r = (struct routes){.torus = t, .algorithm = a};
    r->representative = calloc(t->nodes, sizeof *r->representative);
    r->class_of = calloc(t->nodes, sizeof *r->class_of);
    r->neighbour = calloc((size_t)t->nodes * torus_ports(t), sizeof *r->neighbour);
    r->leg = calloc((size_t)a->max_legs(t) + 1, sizeof *r->leg); /* never 0 bytes */
    if (r->representative == NULL || r->class_of == NULL || r->neighbour == NULL ||
        r->leg == NULL) {
        routes_close(r);
        return error_set(e, ERROR_MEMORY, "no memory for the routes of %u nodes", t->nodes);
    }
    fill_tables(r);
    return 0;
}

void routes_close(struct routes *r)
{
    free(r->representative);
    free(r->class_of);
    free(r->neighbour);
    free(r->leg);
    *r = (struct routes){0};
}

bool routes_next(struct routes *r)
{
    const struct algorithm *a = r->algorithm;

    /* Counts up (source_class, destination, segment). */
    if (!r->begun) {
        r->begun = true;
        r->source_class = r->destination = r->segment = 0;
    } else if (++r->segment == a->segments) {
        r->segment = 0;
        r->destination++;
    }
    for (; r->source_class < r->classes; r->source_class++, r->destination = 0) {
        r->source = r->representative[r->source_class];
        if (r->destination == r->source)
            r->destination++;
        if (r->destination < r->torus->nodes) {
            r->legs = a->route(r->torus, r->source, r->destination, r->segment, r->leg);
            return true;
        }
    }
    r->begun = false;
    return false;
}

uint32_t routes_leg_end(const struct routes *r, uint32_t node, const struct leg *leg)
{
    unsigned port = torus_port(leg->dim, leg->direction);

    for (uint16_t hop = 0; hop < leg->hops && node != TORUS_NO_NODE; hop++)
        node = routes_neighbour(r, node, port);
    return node;
}

uint32_t routes_translate(const struct routes *r, uint32_t node, uint32_t from, uint32_t to)
{
    const struct torus *t = r->torus;
    uint32_t a[TORUS_MAX_DIMS], b[TORUS_MAX_DIMS], c[TORUS_MAX_DIMS];

    if (from == to)
        return node;
    torus_coordinates(t, node, a);
    torus_coordinates(t, from, b);
    torus_coordinates(t, to, c);
    for (unsigned i = 0; i < t->dims; i++)
        a[i] = (a[i] + t->size[i] - b[i] + c[i]) % t->size[i];
    return torus_rank(t, a);
}
