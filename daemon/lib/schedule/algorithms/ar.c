/* AR: complete exchange on an all-port ring of p nodes, p even. Liu, Gu, Bi, Tu, Dong: Optimal
 * All-to-All Personalized Communication in All-Port Tori, section 3.
 *
 * At most one hop brings a block to a node of its destination's parity. From there even nodes pass
 * blocks to even nodes and odd nodes to odd nodes, two hops a step, in both directions at once.
 * ring.c has the rule for one block.
 * - Stage 1 (one step): blocks whose destination has the other parity make one hop.
 * - Stage 2 (floor(p/4) steps): even nodes send in direction +, odd nodes in direction -.
 * - Stage 3 (ceil(p/4) - 1 steps): even nodes send in direction -, odd nodes in direction +.
 *
 * The paper asks for p >= 4. A ring of 2 works too, as one swap. A ring of odd size gets one
 * imaginary node (imaginary.h). */
#include "daemon/lib/schedule/algorithms/imaginary.h"
#include "daemon/lib/schedule/algorithms/ring.h"
#include "daemon/lib/schedule/algorithms/rows.h"

/* The dimension with more than one node; if there is none, the last one. */
static unsigned ring_dim(const struct torus *t)
{
    unsigned dim = 0;
    while (dim + 1 < t->dims && t->size[dim] == 1)
        dim++;
    return dim;
}

static int ar_accepts(const struct torus *t, struct error *e)
{
    unsigned dim = ring_dim(t);
    if (t->size[dim] != t->nodes || (t->nodes > 1 && !t->wrap[dim]))
        return algorithm_refuse(&algorithm_ar, t, e);
    return 0;
}

static uint32_t ar_max_legs(const struct torus *t)
{
    return ring_steps(imaginary_size(t->nodes, 2));
}

static void ar_period(const struct torus *t, uint32_t *period)
{
    imaginary_period(t, 2, 2, period);
}

static uint32_t padded_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                             struct leg *legs)
{
    unsigned dim = ring_dim(padded);
    struct ring ring = {.nodes = padded->size[dim], .stride = 1, .dim = (uint8_t)dim};
    return ring_route(&ring, from[dim], to[dim], ring_tie(to[dim]), legs);
}

static uint32_t ar_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return imaginary_route(t, 2, padded_route, source, destination, legs);
}

const struct algorithm algorithm_ar = {
    .name = "ar",
    .summary = "ring: one hop to the destination's parity, then two hops a step in both directions",
    .accepts_text = "a ring: one dimension that wraps, all others of size 1",
    .startups = "p/2 (odd p: (p+1)/2)",
    .transmission = "ceil(p^2/8), p even",
    .source = "Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, "
              "section 3",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = ar_accepts,
    .max_legs = ar_max_legs,
    .period = ar_period,
    .route = ar_route,
};
