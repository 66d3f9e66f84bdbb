#include "daemon/lib/schedule/algorithms/imaginary.h"

uint32_t imaginary_size(uint32_t size, uint32_t multiple)
{
    return size == 1 ? 1 : (size + multiple - 1) / multiple * multiple;
}

/* Real node x of `size` is at position ceil(x * padded / size), so the real node at or before a
 * position is floor(position * size / padded). A walk past the ring's end has positions from
 * `padded` on, and hosts from `size` on. */
static uint32_t position(uint32_t x, uint32_t size, uint32_t padded)
{
    return (uint32_t)(((uint64_t)x * padded + size - 1) / size);
}

static uint32_t host(uint32_t position, uint32_t size, uint32_t padded)
{
    return (uint32_t)((uint64_t)position * size / padded);
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void imaginary_period(const struct torus *t, uint32_t multiple, uint32_t padded_period,
                      uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++) {
        /* The smallest number of real nodes that cover a multiple of padded_period positions. */
        uint32_t periods = imaginary_size(t->size[i], multiple) / padded_period;
        period[i] = t->size[i] / common_divisor(t->size[i], periods);
    }
}

uint32_t imaginary_route(const struct torus *t, uint32_t multiple, padded_route_fn *route,
                         uint32_t source, uint32_t destination, struct leg *legs)
{
    struct torus padded = *t;
    uint32_t at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t count = 0;

    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    padded.nodes = 1;
    for (unsigned i = 0; i < t->dims; i++) {
        padded.size[i] = imaginary_size(t->size[i], multiple);
        padded.nodes *= padded.size[i];
        at[i] = position(at[i], t->size[i], padded.size[i]);
        to[i] = position(to[i], t->size[i], padded.size[i]);
    }

    uint32_t padded_count = route(&padded, at, to, legs);
    for (unsigned i = 0; i < t->dims; i++)
        at[i] += padded.size[i]; /* so that a leg in direction - does not go below 0 */
    for (uint32_t i = 0; i < padded_count; i++) {
        struct leg leg = legs[i];
        uint32_t *x = &at[leg.dim];
        uint32_t before = host(*x, t->size[leg.dim], padded.size[leg.dim]);

        *x += (uint32_t)(leg.direction * leg.hops);
        uint32_t after = host(*x, t->size[leg.dim], padded.size[leg.dim]);
        leg.hops = (uint16_t)(after > before ? after - before : before - after);
        if (leg.hops > 0)
            legs[count++] = leg;
    }
    return count;
}
