#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rings.h"
#include "daemon/lib/schedule/bits.h"

uint32_t ring_one_port_route(const struct ring *ring, uint32_t from, uint32_t to, uint32_t last,
                             struct leg *legs)
{
    uint32_t n = ring->nodes;
    uint32_t offset = (to + n - from) % n;
    uint32_t count = 0;

    if (offset == 0)
        return 0;
    /* On a ring of two both ways are equally long. Both nodes take +, so that both do the same. */
    if (n == 2) {
        legs[0] = (struct leg){
            .step = ring->step, .hops = ring->stride, .dim = ring->dim, .direction = 1};
        return 1;
    }

    /* Odd nodes send the block for their exact opposite +, even nodes -. */
    bool even = from % 2 == 0;
    bool plus = 2 * offset < n || (2 * offset == n && !even);
    uint32_t hops = plus ? offset : n - offset;
    struct leg leg = {.dim = ring->dim, .direction = plus ? 1 : -1};

    /* Even nodes carry all blocks that go +, odd nodes all that go -: the first swap hands them
     * over. */
    if (plus != even) {
        leg.step = ring->step;
        leg.hops = ring->stride;
        legs[count++] = leg;
        hops--;
    }
    for (uint32_t i = 0; i < hops / 2; i++) {
        leg.step = ring->step + 1 + i;
        leg.hops = (uint16_t)(2 * ring->stride);
        legs[count++] = leg;
    }
    /* The last swap: blocks for the carrier's next neighbour. */
    if (hops % 2 != 0) {
        leg.step = last;
        leg.hops = ring->stride;
        legs[count++] = leg;
    }
    return count;
}

uint32_t line_one_port_route(uint32_t k, uint8_t dim, uint32_t step, uint32_t from, uint32_t to,
                             struct leg *legs)
{
    uint32_t offset = (to + k - from) % k;
    bool forward = offset <= k / 2;
    uint32_t shifts = forward ? offset : k - offset;
    uint32_t turn = forward ? k - 1 : 0; /* the end of the line, from which the ring leads back */
    int8_t direction = forward ? 1 : -1;

    if (!forward)
        step += k / 2;
    for (uint32_t i = 0; i < shifts; i++) {
        bool back = from == turn;
        legs[i] = (struct leg){.step = step + i,
                               .hops = (uint16_t)(back ? k - 1 : 1),
                               .dim = dim,
                               .direction = (int8_t)(back ? -direction : direction)};
        from = back ? k - 1 - turn : forward ? from + 1 : from - 1;
    }
    return shifts;
}

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

/* Whether all dimensions of more than one node wrap. */
static bool one_port_wraps(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && !t->wrap[i])
            return false;
    return true;
}

/* Writes the legs of AR1 from coordinate *at to `to` along `dim`, on the logical ring of every
 * `stride`-th node, from `step` on, and sets *at to `to`. Returns how many: at most
 * p->ring_steps. */
static uint32_t one_port_ring(const struct one_port *p, const struct torus *padded, unsigned dim,
                              uint32_t stride, uint32_t step, uint32_t *at, uint32_t to,
                              struct leg *legs)
{
    struct ring ring = {.nodes = padded->size[dim] / stride,
                        .step = step,
                        .stride = (uint16_t)stride,
                        .dim = (uint8_t)dim};
    uint32_t from = *at;

    *at = to;
    return ring_one_port_route(&ring, from / stride, to / stride, step + p->ring_steps - 1, legs);
}

/* The functions `period` and `route` (algorithm.h) of an algorithm whose route on the padded torus
 * is `route`. */
static void one_port_period(const struct torus *t, uint32_t *period)
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

/* Divides the steps (rings.h). On the padded torus, the legs of one step along one dimension in
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

/* The functions `period` and `route` (algorithm.h) of an algorithm whose route on the padded torus
 * is `route`. */
static uint32_t one_port_route(const struct torus *t, padded_route_fn *route, uint32_t source,
                               uint32_t destination, struct leg *legs)
{
    struct one_port p;

    one_port_init(&p, t);
    uint32_t count = imaginary_route(t, p.multiple, route, source, destination, legs);
    if (is_padded(t, p.multiple))
        divide_steps(&p, t, legs, count);
    return count;
}

/* AR1: complete exchange on a one-port ring of p nodes, p even. Liu, Gu, Ren, Xiong: Efficient and
 * Scalable Algorithms for All-to-All Personalized Communication on Multidimensional Tori, section
 * 3.
 *
 * Even nodes carry all blocks that go in direction +, odd nodes all that go in direction -. So a
 * node sends one message and receives one in each step. ring_one_port_route() has the rule for one block.
 * - First step: each even node swaps with the odd node before it. The even node gets the blocks of
 *   both that go +, the odd node those that go -.
 * - ceil(p/4) - 1 steps: even nodes send two hops in direction +, odd nodes two hops in direction
 *   -. Each carrier takes out the blocks for itself and for the next node in its direction. The
 *   node inside such a leg relays it while it sends its own message the other way.
 * - Last step: each node swaps with that next node.
 *
 * A ring of 2 takes one swap, where the paper's formula counts an empty second one. A ring of odd
 * size gets one imaginary node, and its steps are divided (rings.h). */

static bool ar1_takes(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return p.k <= 1 && one_port_wraps(t);
}

static uint32_t ar1_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return p.ring_steps;
}

static uint32_t ar1_padded_route(const struct torus *padded, const uint32_t *from,
                                 const uint32_t *to, struct leg *legs)
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
    return one_port_route(t, ar1_padded_route, source, destination, legs);
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
    .takes = ar1_takes,
    .max_legs = ar1_max_legs,
    .period = one_port_period,
    .route = ar1_route,
};

/* PTk: complete exchange on a one-port torus of k dimensions, k a power of two. Liu, Gu, Ren,
 * Xiong: Efficient and Scalable Algorithms for All-to-All Personalized Communication on
 * Multidimensional Tori, section 5.1. For k = 2 it is the AT2 of their section 4, for k = 1 AR1
 * (above).
 *
 * PTk runs PTk/2 in one half of the dimensions, then in the other half, on the logical tori of
 * every second node along each dimension. A node is even or odd by the sum of its coordinates. Even
 * and odd nodes begin with different halves, so that no two messages meet on a channel.
 * - Phase 1: even nodes run PTk/2 in the first half of the dimensions, then in the second half; odd
 *   nodes the other way round. Then a block is in the 2 x ... x 2 cube of its destination, at the
 *   node with its source's parities.
 * - Phase 2: a swap along each dimension of the cube.
 *
 * Sizes must be multiples of 2k; others get imaginary nodes, with divided steps (rings.h).
 *
 * Our counts differ from the paper's formulas in three cases:
 * - Logical rings of 2 nodes (all sizes 2k): AR1 is one swap, and the formula counts an empty
 *   second one in each of the k rounds. 16 startups on 8x8x8x8, really 12.
 * - k >= 8: the paper's closed form of the transmission has floor(k^2/4) + k/2 as the coefficient
 *   of N. The recurrence that it comes from, and enumeration, give k/2 * (1 + log2 k). For k = 2
 *   and 4 the two are equal.
 * - Different sizes: a step costs what it costs on its busiest ring. If the largest size is an odd
 *   multiple of 2k, AR1's last swap on its rings is a block shorter than on smaller rings with an
 *   even number of pairs. The sum of the steps is then more than the formula, which prices the
 *   largest rings alone and is the critical path (8x12: 352 and 320 blocks). */

/* The route of a block on the padded torus, up to the node `at`. */
struct walk {
    struct one_port shape;
    const struct torus *padded;
    uint32_t at[TORUS_MAX_DIMS];
    struct leg *legs;
    uint32_t count;
};

/* Steps of an exchange in `k` dimensions: k rounds on rings, and k swaps at each halving. */
static uint32_t steps_of(const struct one_port *p, unsigned k)
{
    return k * (p->ring_steps + power_of(k));
}

/* Appends the legs to `to` along dimensions first .. first+k-1 of the shape, on the logical torus
 * of every `stride`-th node, from `step` on. */
static void go(struct walk *w, unsigned first, unsigned k, uint32_t stride, const uint32_t *to,
               uint32_t step)
{
    const uint8_t *dim = w->shape.dim + first;
    uint32_t near[TORUS_MAX_DIMS] = {0}; /* the node to which phase 1 leads */
    uint32_t sum = 0, half = k / 2;

    if (k == 1) {
        w->count += one_port_ring(&w->shape, w->padded, *dim, stride, step, &w->at[*dim], to[*dim],
                                  w->legs + w->count);
        return;
    }
    for (unsigned i = 0; i < k; i++) {
        uint32_t parity = w->at[dim[i]] / stride % 2;
        near[dim[i]] =
            to[dim[i]] / (2 * stride) * (2 * stride) + parity * stride + to[dim[i]] % stride;
        sum += parity;
    }
    uint32_t now = sum % 2 == 0 ? first : first + half, then = 2 * first + half - now;
    go(w, now, half, 2 * stride, near, step);
    go(w, then, half, 2 * stride, near, step + steps_of(&w->shape, half));
    step += 2 * steps_of(&w->shape, half);
    for (unsigned i = 0; i < k; i++, step++) {
        uint32_t *at = &w->at[dim[i]];
        if (*at != to[dim[i]])
            w->legs[w->count++] = (struct leg){.step = step,
                                               .hops = (uint16_t)stride,
                                               .dim = dim[i],
                                               .direction = to[dim[i]] > *at ? 1 : -1};
        *at = to[dim[i]];
    }
}

static bool pt_takes(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return is_power_of_two(p.k) && one_port_wraps(t);
}

static uint32_t pt_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return steps_of(&p, p.k);
}

static uint32_t pt_padded_route(const struct torus *padded, const uint32_t *from,
                                const uint32_t *to, struct leg *legs)
{
    struct walk w = {.padded = padded, .legs = legs};

    one_port_init(&w.shape, padded);
    for (unsigned i = 0; i < padded->dims; i++)
        w.at[i] = from[i];
    go(&w, 0, w.shape.k, 1, to, 0);
    return w.count;
}

static uint32_t pt_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return one_port_route(t, pt_padded_route, source, destination, legs);
}

const struct algorithm algorithm_pt = {
    .name = "pt",
    .summary = "PTk: even nodes work in one half of the dimensions, odd nodes in the other, then "
               "they change",
    .accepts_text = "1, 2, 4 or 8 dimensions of more than one node, all of them wrapping",
    .startups =
        "k*(ceil(n/4k) + log2 k + 1), n the largest size, all multiples of 2k (n = 2k: k fewer)",
    .transmission = "(k^2*floor(n^2/8k^2) + (floor(k^2/4) + k/2)*n) * N/n, k = 2 or 4 (some "
                    "different sizes: critical path)",
    .source = "Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized "
              "Communication on Multidimensional Tori, section 5.1",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .takes = pt_takes,
    .max_legs = pt_max_legs,
    .period = one_port_period,
    .route = pt_route,
};

/* AT2 for one port: complete exchange on a one-port torus of two dimensions. Liu, Gu, Ren, Xiong:
 * Efficient and Scalable Algorithms for All-to-All Personalized Communication on Multidimensional
 * Tori, section 4.
 *
 * Blocks move on logical rings of every second node of a line to the 2x2 square of their
 * destination, and then within the square.
 * - Phase 1: AR1 along one dimension, then along the other. Even nodes (even sum of
 *   coordinates) and odd nodes begin with different dimensions, so that no two messages meet on a
 *   channel.
 * - Phase 2: a swap along each dimension in the 2x2 squares.
 *
 * This is PTk with k = 2, so PTk computes the routes. Its comment also describes sizes that are no
 * multiples of four, and where our counts differ from the paper's formulas. In the paper's AT2,
 * even nodes begin with their rows (dimension 1); here they begin with dimension 0, as in the
 * paper's PTk. The counts are the same, because both dimensions are busy in either round. */

static bool at2_1port_takes(const struct torus *t)
{
    return t->dims == 2 && one_port_wraps(t);
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
    .takes = at2_1port_takes,
    .max_legs = at2_1port_max_legs,
    .period = one_port_period,
    .route = at2_1port_route,
};

/* MTk: complete exchange on a one-port torus of any number k of dimensions. Liu, Gu, Ren, Xiong:
 * Efficient and Scalable Algorithms for All-to-All Personalized Communication on Multidimensional
 * Tori, sections 5.2 and 5.3.
 *
 * Blocks move on logical rings of every k-th node to the k x ... x k submesh of their destination,
 * and then within the submesh. A node is in group g, the sum of its coordinates modulo k.
 * - Phase 1, k rounds: in round q, the nodes of group g run AR1 along dimension (g + q) mod
 *   k. k neighbours on a line are in k different groups, which work along different dimensions, so
 *   that no two messages meet on a channel. Then a block is in its destination's submesh, at the
 *   place that its source has in its own.
 * - Phase 2, for each dimension: an exchange on the submesh's lines of k nodes.
 *
 * For k = 3 the paper spells out phase 2: each node sends to the next node of the line, cyclically,
 * then to the one before. For other k it only gives the cost of an exchange by Gu, k-1 startups and
 * floor(k^2/4) blocks. The exchange of line_one_port_route() has this cost, and for k = 3 it is the
 * paper's.
 *
 * Sizes must be multiples of 2k; others get imaginary nodes, with divided steps (rings.h).
 *
 * Our counts differ from the paper's formulas in two cases:
 * - Logical rings of 2 nodes (all sizes 2k): AR1 is one swap, and the formula counts an empty
 *   second one in each round. 12 startups on 6x6x6, really 9.
 * - Different sizes: see PTk. */

static bool mt_takes(const struct torus *t)
{
    return one_port_wraps(t);
}

static uint32_t mt_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return p.k * (p.ring_steps + line_one_port_legs(p.k));
}

static uint32_t mt_padded_route(const struct torus *padded, const uint32_t *from,
                                const uint32_t *to, struct leg *legs)
{
    struct one_port p;
    uint32_t at[TORUS_MAX_DIMS];
    uint32_t sum = 0, count = 0;

    one_port_init(&p, padded);
    for (unsigned i = 0; i < p.k; i++) {
        at[i] = from[p.dim[i]];
        sum += at[i];
    }
    for (unsigned round = 0; round < p.k; round++) {
        unsigned i = (sum + round) % p.k;
        uint32_t x = to[p.dim[i]];
        count += one_port_ring(&p, padded, p.dim[i], p.k, round * p.ring_steps, &at[i],
                               x - x % p.k + at[i] % p.k, legs + count);
    }
    for (unsigned i = 0; i < p.k; i++)
        count +=
            line_one_port_route(p.k, p.dim[i], p.k * p.ring_steps + i * line_one_port_steps(p.k),
                                at[i] % p.k, to[p.dim[i]] % p.k, legs + count);
    return count;
}

static uint32_t mt_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return one_port_route(t, mt_padded_route, source, destination, legs);
}

const struct algorithm algorithm_mt = {
    .name = "mt",
    .summary =
        "MTk: k groups of nodes take turns in the dimensions, then each line of k nodes exchanges",
    .accepts_text = "any number of dimensions; all dimensions of more than one node wrap",
    .startups = "k*ceil(n/4k) + k^2, n the largest size, all multiples of 2k (n = 2k: k fewer)",
    .transmission = "(k^2*floor(n^2/8k^2) + (floor(k^2/4) + k/2)*n) * N/n (some different sizes: "
                    "critical path)",
    .source = "Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized "
              "Communication on Multidimensional Tori, sections 5.2 and 5.3; lines of more than 3 "
              "nodes: this "
              "project",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .takes = mt_takes,
    .max_legs = mt_max_legs,
    .period = one_port_period,
    .route = mt_route,
};

/* Complete exchange on a one-port torus of r x c nodes: first in squares of 2x2 nodes, then within
 * four groups of nodes. Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized Communication in
 * All-Port Tori, section 4.A, describes this scheme of Tseng, Ni and Sheu [7] and of Gu [8], which
 * AT2 (all_port_rings.c) improves.
 *
 * The nodes of a group have coordinates of the same parities.
 * - Part 1 (2 steps): a swap along dimension 0, then along dimension 1, in the squares of the nodes
 *   (2i, 2j) to (2i+1, 2j+1). Then a block is in the group of its destination.
 * - Part 2: a complete exchange within each group.
 *
 * The paper gives no counts, and does not describe part 2. It says that the scheme keeps to one
 * port, leaves channels idle, and does not use shortest paths. Part 2 is reconstructed with
 * algorithms of the same authors, and so are the counts: AR1 along one dimension, then along
 * the other, on the logical rings of a group, which have every second node of a row or column. Two
 * groups share each row and each column. So the groups with x + y even begin with their rows, the
 * others with their columns, as in AT2, and no two messages meet on a channel. Main terms of p^2/8
 * blocks on rings and N*n/8 on square tori, which AR1 and this scheme have, are what Gu states [8].
 *
 * at2-1port runs the same exchanges in the opposite order, rings first and squares last, and costs
 * the same. It takes the shortest path more often, because the direction of its swaps is that of the
 * destination.
 *
 * Sizes must be multiples of four. */

enum { SWAPS = 2 };

static bool squares_takes(const struct torus *t)
{
    bool taken = t->dims == 2;
    for (unsigned i = 0; taken && i < 2; i++)
        taken = t->wrap[i] && t->size[i] % 4 == 0;
    return taken;
}

static uint32_t squares_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return SWAPS + 2 * p.ring_steps;
}

static uint32_t squares_route(const struct torus *t, uint32_t source, uint32_t destination,
                              uint32_t segment, struct leg *legs)
{
    struct one_port p;
    uint32_t at[2], to[2], count = 0;

    (void)segment;
    one_port_init(&p, t);
    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    for (unsigned dim = 0; dim < 2; dim++) {
        if (at[dim] % 2 == to[dim] % 2)
            continue;
        legs[count++] = (struct leg){
            .step = dim, .hops = 1, .dim = (uint8_t)dim, .direction = at[dim] % 2 == 0 ? 1 : -1};
        at[dim] ^= 1;
    }

    /* The paper's row rings run along dimension 1. */
    unsigned dim = (at[0] + at[1]) % 2 == 0 ? 1 : 0;
    for (unsigned round = 0; round < 2; round++, dim = 1 - dim)
        count += one_port_ring(&p, t, dim, 2, SWAPS + round * p.ring_steps, &at[dim], to[dim],
                               legs + count);
    return count;
}

const struct algorithm algorithm_squares = {
    .name = "squares",
    .summary = "torus: swaps in squares of 2x2, then AR1 on rows and columns at the same time",
    .accepts_text = "two dimensions that wrap, both multiples of 4",
    .startups = "2*ceil(c/8) + 4, c the larger size (4x4: 4)",
    .transmission = "4*r*floor(c^2/32) + 2*r*c (some r != c: critical path)",
    .source = "Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, section "
              "4.A, after Tseng, Ni and Sheu, and Gu; part 2: this project",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .takes = squares_takes,
    .max_legs = squares_max_legs,
    .period = one_port_period,
    .route = squares_route,
};
