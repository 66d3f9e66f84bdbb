/* dim-1port: one port, any size: dimension after dimension, an exchange on each line, without imaginary nodes. Legs may have several
 * hops, and nodes inside them relay, as in the one-port algorithms of Liu, Gu, Ren and Xiong (one_port_rings.c).
 *
 * - A line of n: line_one_port_route(), the exchange inside the submeshes of `mt`: n - 1 steps, floor(n^2/4) blocks.
 * - A ring of up to nine: every block is a message of its own, in a step from a table. A ring of n takes as many steps,
 *   and blocks, as the lower bound: the larger of n - 1 and ceil(floor(n^2/4)/2).
 * - A larger ring of even size: AR1.
 * - A larger ring of n = 2h + 1: AR1 on the other 2h nodes, while the last node, the guest, swaps a block with each of
 *   them in turn. Meanwhile AR1's first swaps go on, one block at a time, on the side of the ring where the guest's block
 *   is not. The rest of AR1 passes over the guest.
 *
 * client/doc/exchange-with-few-ports.md has the counts and their proofs. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rings.h"
#include "daemon/lib/schedule/algorithms/rotation.h"

enum { TABLE_MOST = 9 };

/* The steps of rings of 3 to 9. A step has a character for each node: to which node it sends, as a digit in direction +
 * and as a letter (a is 0) in direction -; `.` if it does not send. No two blocks of a step share a channel, or a
 * destination, and all go the shorter way. Found by a search that fills one step after another. */
static const char *const table[TABLE_MOST + 1] = {
    [3] = "120 cab",
    [4] = "1a3c c3a1 d2b0",
    [5] = "1a34c 2eb0d d24b0 e3ac1",
    [6] = "1a3c5e 2e5bd0 3fb40c e3a5c1 f24a1d",
    [7] = "3fb6ce0 fa4b6d2 2g35b0e g4ac51d e25ad61 13g40cf",
    [8] = "13h46c0f 4gbc57d0 fa36be72 3.g5c0e. h5a..1cg .25hd61e g4.a7df1 2h4b0..d",
    [9] = "3ib5c0egh ia346b72f h4ac561d. .g4b7df82 g25a.8d.1 15i..7c0g 4.h.8c.f0 .h.6b.8e3 "
          "f3.7ae.1. 2.6id.0.e",
};

static uint32_t by_table(uint32_t n, struct ring *ring, uint32_t from, uint32_t to,
                         struct leg *legs)
{
    for (const char *step = table[n];; step += n + 1, ring->step++) {
        const char way = step[from];
        if (way == (char)('0' + to) || way == (char)('a' + to)) {
            const bool plus = way < 'a';
            legs[0] = (struct leg){.step = ring->step,
                                   .hops = (uint16_t)((plus ? to + n - from : from + n - to) % n),
                                   .dim = ring->dim,
                                   .direction = plus ? 1 : -1};
            return 1;
        }
    }
}

/* How many nodes the guest reaches in direction +: half of the others, rounded up to whole pairs of AR1's first swap. */
static uint32_t plus_side(uint32_t n)
{
    uint32_t half = n / 2;
    return half + half % 2;
}

/* The guest is the last node. Its swaps take the steps before AR1's second one: with the nodes of the - side in the first
 * ones, with the nodes of the + side in the last ones. First swaps on the + side are in the first n/2 steps, those on the -
 * side in the last n/2 steps. */
static uint32_t with_guest(uint32_t n, struct ring *ring, uint32_t from, uint32_t to,
                           struct leg *legs)
{
    const uint32_t others = n - 1, half = n / 2, side = plus_side(n), begin = ring->step;

    if (from == others || to == others) {
        const uint32_t node = from == others ? to : from;
        const bool plus = node < side;
        legs[0] = (struct leg){.step = begin + (plus ? half + node : others - 1 - node),
                               .hops = (uint16_t)(plus ? node + 1 : others - node),
                               .dim = ring->dim,
                               .direction = plus == (from == others) ? 1 : -1};
        return 1;
    }
    ring->nodes = others;
    ring->step = begin + half + side - 1;
    /* One further, so that no pair of the first swap has the guest between its nodes. */
    const uint32_t count = ring_one_port_route(ring, (from + 1) % others, (to + 1) % others,
                                               ring->step + ring_one_port_steps(others) - 1, legs);
    const uint32_t ahead = (to + others - from) % others;
    const uint32_t distance = ahead < others - ahead ? ahead : others - ahead;
    uint32_t at = from;
    for (uint32_t i = 0; i < count; i++) {
        struct leg *leg = &legs[i];
        const uint32_t hops = leg->hops;
        const bool over = leg->direction > 0 ? at + hops >= others : at < hops;
        if (leg->step == ring->step)
            leg->step = begin + (from < side ? 0 : half) + distance - 1;
        at = (leg->direction > 0 ? at + hops : at + others - hops) % others;
        leg->hops = (uint16_t)(hops + over);
    }
    return count;
}

static uint32_t table_steps(uint32_t n)
{
    uint32_t least = (n * n / 4 + 1) / 2; /* by the busiest channels */
    return least > n - 1 ? least : n - 1;
}

/* Every `stride`-th node along a dimension, from the first one on. */
struct row {
    uint32_t nodes;
    uint16_t stride;
    uint8_t dim;
    bool wraps;
};

static struct row row_of(const struct torus *t, unsigned dim, uint32_t stride)
{
    return (struct row){.nodes = t->size[dim] / stride,
                        .stride = (uint16_t)stride,
                        .dim = (uint8_t)dim,
                        .wraps = t->wrap[dim]};
}

/* The steps of an exchange on a row. */
static uint32_t steps_of(const struct row *r)
{
    const uint32_t n = r->nodes;

    if (n == 1 || !r->wraps)
        return line_one_port_steps(n);
    if (n > 2 && n <= TABLE_MOST)
        return table_steps(n);
    if (n % 2 == 0)
        return ring_one_port_steps(n);
    return n / 2 + plus_side(n) + ring_one_port_steps(n - 1) - 1;
}

/* Writes the legs of a block from node to node of a row, in an exchange that begins with `step`. Returns how many. */
static uint32_t along(const struct row *r, uint32_t step, uint32_t from, uint32_t to,
                      struct leg *legs)
{
    const uint32_t n = r->nodes;
    struct ring ring = {.nodes = n, .step = step, .stride = 1, .dim = r->dim};
    uint32_t count;

    if (from == to)
        return 0;
    if (!r->wraps)
        count = line_one_port_route(n, r->dim, step, from, to, legs);
    else if (n > 2 && n <= TABLE_MOST)
        count = by_table(n, &ring, from, to, legs);
    else if (n % 2 == 0)
        count = ring_one_port_route(&ring, from, to, step + ring_one_port_steps(n) - 1, legs);
    else
        count = with_guest(n, &ring, from, to, legs);
    for (uint32_t i = 0; i < count; i++)
        legs[i].hops = (uint16_t)(legs[i].hops * r->stride);
    return count;
}

/* The translation period of an exchange on a row, in nodes of the row. */
static uint32_t period_of(const struct row *r)
{
    if (r->wraps && r->nodes == 2)
        return 1;
    return r->wraps && r->nodes % 2 == 0 && r->nodes > TABLE_MOST ? 2 : r->nodes;
}

static bool fits(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > UINT16_MAX)
            return false;
    return true;
}

static uint32_t dim_1port_steps(const struct torus *t)
{
    uint32_t steps = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        const struct row row = row_of(t, i, 1);
        steps += steps_of(&row);
    }
    return steps;
}

static uint32_t dim_1port_route(const struct torus *t, uint32_t source, uint32_t destination,
                                uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], step = 0, count = 0;

    (void)segment;
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++) {
        const struct row row = row_of(t, i, 1);
        count += along(&row, step, from[i], to[i], legs + count);
        step += steps_of(&row);
    }
    return count;
}

static void dim_1port_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++) {
        const struct row row = row_of(t, i, 1);
        period[i] = period_of(&row);
    }
}

const struct algorithm algorithm_dim_1port = {
    .name = "dim-1port",
    .summary =
        "one dimension after another on one port; sizes need not be even, no imaginary nodes",
    .accepts_text = "any torus or mesh with at most 65535 nodes in a dimension",
    .startups = "n_i up to 7: n_i - 1, 8: 8, 9: 10; even: ceil(n_i/4) + 1; odd, n_i = 2h + "
                "1: 2*ceil(h/2) + h + ceil(h/2); line: n_i - 1",
    .transmission = "N/n_i * (n_i up to 7: n_i - 1, 8: 8, 9: 10; even: floor(n_i^2/8) + "
                    "n_i/2; odd: ceil(h^2/2) + 2h; line: floor(n_i^2/4))",
    .source = "this project, with AR1 and the line exchange of Liu, Gu, Ren, Xiong: Efficient and "
              "Scalable Algorithms for All-to-All Personalized Communication on Multidimensional "
              "Tori",
    .port_model = PORT_MODEL_ONE,
    .by_lines = true,
    .only_by_name = true,
    .segments = 1,
    .takes = fits,
    .max_legs = dim_1port_steps,
    .period = dim_1port_period,
    .ordered_steps = dim_1port_steps,
    .route = dim_1port_route,
};

/* lanes-1port: all dimensions at once, for d dimensions whose sizes are multiples of d. It is MTk (one_port_rings.c) with
 * the exchanges above in place of AR1, and with the submeshes last. A node belongs to the lane of the sum of its
 * coordinates mod d. In phase q, the nodes of lane j exchange along dimension j + q, on rows of every d-th node. After d
 * phases a block is in the d x ... x d submesh of its destination, at the place that its source has in its own submesh. Then
 * the submeshes have an exchange of their own. In any line, the nodes of one lane are every d-th, so no channel carries two
 * messages. */

static uint32_t lanes_of(const struct torus *t)
{
    return rotation_of(t).count;
}

/* The steps of a phase: those of the longest exchange. */
static uint32_t phase_steps(const struct torus *t)
{
    const struct rotation order = rotation_of(t);
    uint32_t most = 0;

    for (unsigned i = 0; i < order.count; i++) {
        const struct row row = row_of(t, order.dim[i], order.count);
        const uint32_t steps = steps_of(&row);
        most = steps > most ? steps : most;
    }
    return most;
}

static bool lanes_takes(const struct torus *t)
{
    const uint32_t lanes = lanes_of(t);

    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && t->size[i] % lanes != 0)
            return false;
    return lanes >= 2 && fits(t);
}

static uint32_t lanes_max_legs(const struct torus *t)
{
    const uint32_t lanes = lanes_of(t);
    return lanes * (phase_steps(t) + line_one_port_legs(lanes));
}

static void lanes_period(const struct torus *t, uint32_t *period)
{
    const uint32_t lanes = lanes_of(t);

    torus_full_period(t, period);
    for (unsigned i = 0; i < t->dims; i++) {
        const struct row row = row_of(t, i, lanes);
        if (t->size[i] > 1)
            period[i] = lanes * period_of(&row);
    }
}

static uint32_t lanes_route(const struct torus *t, uint32_t source, uint32_t destination,
                            uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], lane = 0, step = 0, count = 0;
    const struct rotation order = rotation_of(t);
    const uint32_t lanes = order.count, steps = phase_steps(t);

    (void)segment;
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        lane += from[i];
    for (unsigned phase = 0; phase < lanes; phase++, step += steps) {
        const unsigned dim = rotation_dim(&order, lane % lanes, phase);
        const struct row row = row_of(t, dim, lanes);
        count += along(&row, step, from[dim] / lanes, to[dim] / lanes, legs + count);
    }
    for (unsigned i = 0; i < lanes; i++, step += line_one_port_steps(lanes)) {
        const uint8_t dim = order.dim[i];
        count +=
            line_one_port_route(lanes, dim, step, from[dim] % lanes, to[dim] % lanes, legs + count);
    }
    return count;
}

const struct algorithm algorithm_lanes_1port = {
    .name = "lanes-1port",
    .summary = "as dim-1port, but nodes side by side work along different dimensions",
    .accepts_text = "d >= 2 dimensions of more than one node, whose sizes are multiples of d and "
                    "at most 65535",
    .startups = "d * those of dim-1port on n/d nodes + d*(d-1), n the largest size",
    .transmission = "equal sizes n: d^2 * N/n * those of dim-1port on n/d nodes + floor(d^2/4) * N",
    .source = "this project, after MTk of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms "
              "for All-to-All Personalized Communication on Multidimensional Tori",
    .port_model = PORT_MODEL_ONE,
    .only_by_name = true,
    .segments = 1,
    .takes = lanes_takes,
    .max_legs = lanes_max_legs,
    .period = lanes_period,
    .route = lanes_route,
};
