/* AT2 for one port: complete exchange on a one-port torus of two dimensions. Liu, Gu, Ren, Xiong:
 * Efficient and Scalable Algorithms for All-to-All Personalized Communication on Multidimensional
 * Tori, section 4.
 *
 * Phase 1: AR1 on the logical rings of every second node of a line, even nodes along dimension 0
 * while odd nodes work along dimension 1, then the other way round. Phase 2: two swaps in squares
 * of 2x2. That is PTk with k = 2, so `pt` has the arithmetic; pt.c says what happens with sizes that
 * are no multiples of four, and where the enumeration differs from the formulas.
 *
 * The paper's AT2 has the dimensions the other way round: its even nodes begin with their rows, that
 * is, with dimension 1. Both dimensions are busy in either round, so the counts are the same. Here
 * dimension 0 comes first, as in the paper's PTk. */
#include "daemon/schedule/algorithms/one_port.h"
#include "daemon/schedule/algorithms/rows.h"

static int at2_1port_accepts(const struct torus *t, struct error *e)
{
    return t->dims == 2 && one_port_wraps(t) ? 0 : algorithm_refuse(&algorithm_at2_1port, t, e);
}

static uint32_t at2_1port_max_legs(const struct torus *t)
{
    return algorithm_pt.max_legs(t);
}

static uint32_t at2_1port_route(const struct torus *t, uint32_t source, uint32_t destination,
                                uint32_t segment, struct leg *legs)
{
    return algorithm_pt.route(t, source, destination, segment, legs);
}

const struct algorithm algorithm_at2_1port = {
    .name = "at2-1port",
    .summary =
        "torus: AR1 on rows beside columns, even nodes beginning with dimension 0, then swaps in "
        "squares of 2x2",
    .accepts_text = "two dimensions that wrap",
    .startups = "2*ceil(c/8) + 4, c the larger size, both multiples of 4 (4x4: 4)",
    .transmission = "4*r*floor(c^2/32) + 2*r*c, both multiples of 4 (some r != c: critical path)",
    .source = "Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized "
              "Communication on Multidimensional Tori, section 4",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .accepts = at2_1port_accepts,
    .max_legs = at2_1port_max_legs,
    .period = one_port_period,
    .route = at2_1port_route,
};
