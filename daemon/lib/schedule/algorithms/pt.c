/* PTk: complete exchange on a one-port torus of k dimensions, k a power of two. Liu, Gu, Ren,
 * Xiong: Efficient and Scalable Algorithms for All-to-All Personalized Communication on
 * Multidimensional Tori, section 5.1. For k = 2 it is the AT2 of their section 4, for k = 1 AR1
 * (ar1.c).
 *
 * PTk runs PTk/2 in one half of the dimensions, then in the other half, on the logical tori of
 * every second node along each dimension. A node is even or odd by the sum of its coordinates. Even
 * and odd nodes begin with different halves, so that no two messages meet on a channel.
 * - Phase 1: even nodes run PTk/2 in the first half of the dimensions, then in the second half; odd
 *   nodes the other way round. Then a block is in the 2 x ... x 2 cube of its destination, at the
 *   node with its source's parities.
 * - Phase 2: a swap along each dimension of the cube.
 *
 * Sizes must be multiples of 2k; others get imaginary nodes, with divided steps (one_port.h).
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
#include "daemon/lib/schedule/algorithms/one_port.h"
#include "daemon/lib/schedule/algorithms/rows.h"
#include "daemon/lib/schedule/bits.h"

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

static int pt_accepts(const struct torus *t, struct error *e)
{
    struct one_port p;

    one_port_init(&p, t);
    return is_power_of_two(p.k) && one_port_wraps(t) ? 0 : algorithm_refuse(&algorithm_pt, t, e);
}

static uint32_t pt_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return steps_of(&p, p.k);
}

static uint32_t padded_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                             struct leg *legs)
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
    return one_port_route(t, padded_route, source, destination, legs);
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
    .accepts = pt_accepts,
    .max_legs = pt_max_legs,
    .period = one_port_period,
    .route = pt_route,
};
