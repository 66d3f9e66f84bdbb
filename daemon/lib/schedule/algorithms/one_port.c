#include "daemon/lib/schedule/algorithms/one_port.h"

#include "daemon/lib/schedule/algorithms/ring_one_port.h"

void one_port_init(struct one_port *p, const struct torus *t)
{
    *p = (struct one_port){0};
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1)
            p->dim[p->k++] = (uint8_t)i;
    if (p->k == 0)
        p->k = 1;
    p->multiple = 2 * p->k;
    for (unsigned i = 0; i < p->k; i++) {
        uint32_t nodes = imaginary_size(t->size[p->dim[i]], p->multiple) / p->k;
        uint32_t steps = ring_one_port_steps(nodes);
        if (steps > p->ring_steps)
            p->ring_steps = steps;
    }
}

bool one_port_wraps(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && !t->wrap[i])
            return false;
    return true;
}

uint32_t one_port_ring(const struct one_port *p, const struct torus *padded, unsigned dim,
                       uint32_t stride, uint32_t step, uint32_t *at, uint32_t to, struct leg *legs)
{
    struct ring ring = {.nodes = padded->size[dim] / stride,
                        .step = step,
                        .stride = (uint16_t)stride,
                        .dim = (uint8_t)dim};
    uint32_t from = *at;

    *at = to;
    return ring_one_port_route(&ring, from / stride, to / stride, step + p->ring_steps - 1, legs);
}

void one_port_period(const struct torus *t, uint32_t *period)
{
    struct one_port p;

    one_port_init(&p, t);
    imaginary_period(t, p.multiple, p.multiple, period);
    /* On logical rings of two, even and odd nodes do the same: half a ring is a period, too. */
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && t->size[i] <= p.multiple && t->size[i] % 2 == 0)
            period[i] = t->size[i] / 2;
}

static bool is_padded(const struct torus *t, uint32_t multiple)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (imaginary_size(t->size[i], multiple) != t->size[i])
            return true;
    return false;
}

/* Divides the steps (one_port.h). On the padded torus, the legs of one step along one dimension in
 * one direction are equally long. On the real torus they have at most two lengths, one of them odd.
 * On a single ring, dividing by direction is enough: a host has at most one even and one odd node,
 * and these never send the same way. */
static void divide_steps(const struct one_port *p, const struct torus *t, struct leg *legs,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct leg *leg = &legs[i];
        if (p->k == 1)
            leg->step = 2 * leg->step + (leg->direction < 0);
        else
            leg->step = (leg->step * torus_ports(t) + torus_port(t, leg->dim, leg->direction)) * 2 +
                        leg->hops % 2;
    }
}

uint32_t one_port_route(const struct torus *t, padded_route_fn *route, uint32_t source,
                        uint32_t destination, struct leg *legs)
{
    struct one_port p;

    one_port_init(&p, t);
    uint32_t count = imaginary_route(t, p.multiple, route, source, destination, legs);
    if (is_padded(t, p.multiple))
        divide_steps(&p, t, legs, count);
    return count;
}
