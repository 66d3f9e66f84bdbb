/* MTk: complete exchange on a one-port torus of any number k of dimensions. Liu, Gu, Ren, Xiong:
 * Efficient and Scalable Algorithms for All-to-All Personalized Communication on Multidimensional
 * Tori, sections 5.2 and 5.3.
 *
 * Blocks move on logical rings of every k-th node to the k x ... x k submesh of their destination,
 * and then within the submesh. A node is in group g, the sum of its coordinates modulo k.
 * - Phase 1, k rounds: in round q, the nodes of group g run AR1 (ar1.c) along dimension (g + q) mod
 *   k. k neighbours on a line are in k different groups, which work along different dimensions, so
 *   that no two messages meet on a channel. Then a block is in its destination's submesh, at the
 *   place that its source has in its own.
 * - Phase 2, for each dimension: an exchange on the submesh's lines of k nodes.
 *
 * For k = 3 the paper spells out phase 2: each node sends to the next node of the line, cyclically,
 * then to the one before. For other k it only gives the cost of an exchange by Gu, k-1 startups and
 * floor(k^2/4) blocks. The exchange of line_one_port.h has this cost, and for k = 3 it is the
 * paper's.
 *
 * Sizes must be multiples of 2k; others get imaginary nodes, with divided steps (one_port.h).
 *
 * Our counts differ from the paper's formulas in two cases:
 * - Logical rings of 2 nodes (all sizes 2k): AR1 is one swap, and the formula counts an empty
 *   second one in each round. 12 startups on 6x6x6, really 9.
 * - Different sizes: see pt.c. */
#include "daemon/lib/schedule/algorithms/line_one_port.h"
#include "daemon/lib/schedule/algorithms/one_port.h"
#include "daemon/lib/schedule/algorithms/rows.h"

static int mt_accepts(const struct torus *t, struct error *e)
{
    return one_port_wraps(t) ? 0 : algorithm_refuse(&algorithm_mt, t, e);
}

static uint32_t mt_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return p.k * (p.ring_steps + line_one_port_legs(p.k));
}

static uint32_t padded_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                             struct leg *legs)
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
    return one_port_route(t, padded_route, source, destination, legs);
}

const struct algorithm algorithm_mt = {
    .name = "mt",
    .summary = "MTk: k groups of nodes take turns in the dimensions, then lines of k nodes",
    .accepts_text = "any number of dimensions, those of more than one node wrapping",
    .startups = "k*ceil(n/4k) + k^2, n the largest size, all multiples of 2k (n = 2k: k fewer)",
    .transmission = "(k^2*floor(n^2/8k^2) + (floor(k^2/4) + k/2)*n) * N/n (some different sizes: "
                    "critical path)",
    .source = "Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized "
              "Communication on Multidimensional Tori, sections 5.2 and 5.3; lines of more than 3 "
              "nodes: this "
              "project",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .accepts = mt_accepts,
    .max_legs = mt_max_legs,
    .period = one_port_period,
    .route = mt_route,
};
