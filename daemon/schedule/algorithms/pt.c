/* PTk: complete exchange on a one-port torus of k dimensions, k a power of two. Liu, Gu, Ren,
 * Xiong: Efficient and Scalable Algorithms for All-to-All Personalized Communication on
 * Multidimensional Tori, section 5.1; for k = 2 it is their AT2 of section 4, for k = 1 AR1.
 *
 * Phase 1: every second node along each dimension makes a logical torus. On these, even nodes (by
 * the sum of their coordinates) run PTk/2 in the first half of the dimensions, then in the second
 * half; odd nodes the other way round. A block is then in the binary k-cube of its destination, at
 * the node with its source's parities. Phase 2: a swap along each dimension of the cube.
 *
 * All sizes multiples of 2k; others through imaginary nodes, with divided steps (one_port.h).
 *
 * Against the paper's formulas:
 * - On logical rings of 2 (all sizes 2k) AR1 is one swap. The formula counts an empty second one in
 *   each of the k rounds: 16 startups on 8x8x8x8, really 12.
 * - The closed form of the transmission fits the recurrence that it comes from for k = 2 and 4.
 *   From k = 8 on the recurrence, and the enumeration, give the coefficient k/2 * (1 + log2 k) of
 *   N, where the closed form has floor(k^2/4) + k/2.
 * - In lockstep a step costs what it costs on the busiest ring. If the largest size is an odd
 *   number of times 2k, AR1's last swap there is a block shorter than on a smaller ring with an
 *   even number of pairs, and the sum of the steps is more than the formula's, which prices the
 *   rings of the largest size alone; that is then the critical path (8x12: 352 and 320 blocks). */
#include "daemon/schedule/algorithms/one_port.h"
#include "daemon/schedule/algorithms/rows.h"
#include "daemon/schedule/bits.h"

/* A block's way on the padded torus, as far as it has come. */
struct walk {
    struct one_port shape;
    const struct torus *padded;
    uint32_t at[TORUS_MAX_DIMS];
    struct leg *legs;
    uint32_t count;
};

/* Steps of an exchange in `k` of the dimensions: k rounds on rings, and k swaps at each halving. */
static uint32_t steps_of(const struct one_port *p, unsigned k)
{
    return k * (p->ring_steps + power_of(k));
}

/* Goes to `to` along dimensions first .. first+k-1 of the shape, on the logical torus of every
 * `stride`-th node, beginning with `step`. */
static void go(struct walk *w, unsigned first, unsigned k, uint32_t stride, const uint32_t *to,
               uint32_t step)
{
    const uint8_t *dim = w->shape.dim + first;
    uint32_t near[TORUS_MAX_DIMS] = {0}; /* where phase 1 leads */
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
    .summary = "PTk: halves of the dimensions take turns, even nodes in one, odd in the other",
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
