/* AR1: complete exchange on a one-port ring of p nodes, p even. Liu, Gu, Ren, Xiong: Efficient and
 * Scalable Algorithms for All-to-All Personalized Communication on Multidimensional Tori, section
 * 3.
 *
 * Even nodes carry all blocks that go in direction +, odd nodes all that go in direction -. So a
 * node sends one message and receives one in each step. ring_one_port.c has the rule for one block.
 * - First step: each even node swaps with the odd node before it. The even node gets the blocks of
 *   both that go +, the odd node those that go -.
 * - ceil(p/4) - 1 steps: even nodes send two hops in direction +, odd nodes two hops in direction
 *   -. Each carrier takes out the blocks for itself and for the next node in its direction. The
 *   node inside such a leg relays it while it sends its own message the other way.
 * - Last step: each node swaps with that next node.
 *
 * A ring of 2 takes one swap, where the paper's formula counts an empty second one. A ring of odd
 * size gets one imaginary node, and its steps are divided (one_port.h). */
#include "daemon/lib/schedule/algorithms/one_port.h"
#include "daemon/lib/schedule/algorithms/rows.h"

static int ar1_accepts(const struct torus *t, struct error *e)
{
    struct one_port p;

    one_port_init(&p, t);
    return p.k <= 1 && one_port_wraps(t) ? 0 : algorithm_refuse(&algorithm_ar1, t, e);
}

static uint32_t ar1_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return p.ring_steps;
}

static uint32_t padded_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                             struct leg *legs)
{
    struct one_port p;

    one_port_init(&p, padded);
    uint32_t at = from[p.dim[0]];
    return one_port_ring(&p, padded, p.dim[0], 1, 0, &at, to[p.dim[0]], legs);
}

static uint32_t ar1_route(const struct torus *t, uint32_t source, uint32_t destination,
                          uint32_t segment, struct leg *legs)
{
    (void)segment;
    return one_port_route(t, padded_route, source, destination, legs);
}

const struct algorithm algorithm_ar1 = {
    .name = "ar1",
    .summary = "ring: neighbours swap, then even nodes carry one way and odd nodes the other",
    .accepts_text = "a ring: one dimension that wraps, all others of size 1",
    .startups = "ceil(p/4) + 1, p even (odd p: up to twice those of p+1)",
    .transmission = "floor(p^2/8) + p/2, p even",
    .source = "Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized "
              "Communication on Multidimensional Tori, section 3",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .accepts = ar1_accepts,
    .max_legs = ar1_max_legs,
    .period = one_port_period,
    .route = ar1_route,
};
