/* AT2 for one port: complete exchange on a one-port torus of two dimensions. Liu, Gu, Ren, Xiong:
 * Efficient and Scalable Algorithms for All-to-All Personalized Communication on Multidimensional
 * Tori, section 4.
 *
 * Blocks move on logical rings of every second node of a line to the 2x2 square of their
 * destination, and then within the square.
 * - Phase 1: AR1 (ar1.c) along one dimension, then along the other. Even nodes (even sum of
 *   coordinates) and odd nodes begin with different dimensions, so that no two messages meet on a
 *   channel.
 * - Phase 2: a swap along each dimension in the 2x2 squares.
 *
 * This is PTk with k = 2, so pt.c computes the routes. pt.c also describes sizes that are no
 * multiples of four, and where our counts differ from the paper's formulas. In the paper's AT2,
 * even nodes begin with their rows (dimension 1); here they begin with dimension 0, as in the
 * paper's PTk. The counts are the same, because both dimensions are busy in either round. */
#include "daemon/lib/schedule/algorithms/one_port.h"
#include "daemon/lib/schedule/algorithms/rows.h"

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
    .summary = "torus: AR1 on rows and columns at the same time, then swaps in squares of 2x2",
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
