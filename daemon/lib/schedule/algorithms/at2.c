/* AT2: complete exchange on an all-port torus of two dimensions, r x c. Liu, Gu, Bi, Tu, Dong:
 * Optimal All-to-All Personalized Communication in All-Port Tori, section 4.
 *
 * At most two hops bring a block to a node whose coordinates have the parities of its
 * destination's. That node and the destination are on logical rings, which consist of every second
 * node of a row or column. On these the block moves by AR (ar.c).
 *
 * Let a node have the coordinates (x, y), in dimensions 0 and 1.
 * - Phase 1 (2 steps): one hop along each dimension in which the parities differ.
 * - Phases 2 and 3: AR on the logical rings of one dimension, then of the other. Nodes with x + y
 *   even (the paper's groups G00 and G11) begin with their row, all others with their column. So
 *   all channels are busy in both phases.
 *
 * Lemma 4 promises r*c^2/8 blocks, the lower bound. The algorithm as printed misses it if a size is
 * 4 mod 8. Then opposite nodes of a logical ring are an odd number of logical hops apart, and in
 * stage 1 of AR a node sends all blocks for its opposite in one direction. On a single ring that is
 * one block, the reason for the ceil() in lemma 2. Here it is one block for each offset in the
 * other dimension. So there are two algorithms, which differ only if a size is 4 mod 8:
 * - `at2` repairs this: half of these blocks go each way. Lemma 4 holds for all multiples of four
 *   (for the critical path, verify.h, if the two sizes differ).
 * - `at2-printed` runs AR as printed. Lemma 4 holds if c is a multiple of 8. Otherwise the critical
 *   path is r blocks longer: 12 blocks on 4x4 (lemma: 8), 76 on 4x12 (72), 228 on 12x12 (216), 152
 *   on 8x12 (144).
 *
 * Sizes that are no multiples of four get imaginary nodes (imaginary.h). If one of the two
 * dimensions has a single node, the torus is a ring and runs AR. */
#include "daemon/lib/schedule/algorithms/imaginary.h"
#include "daemon/lib/schedule/algorithms/ring.h"
#include "daemon/lib/schedule/algorithms/rows.h"

enum { MULTIPLE = 4 };

static bool is_ring(const struct torus *t)
{
    return t->size[0] == 1 || t->size[1] == 1;
}

static int accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    bool taken = t->dims == 2;
    for (unsigned i = 0; taken && i < 2; i++)
        taken = t->wrap[i] || t->size[i] == 1;
    return taken ? 0 : algorithm_refuse(a, t, e);
}

/* Steps of phase 2, and of phase 3: as many as the longer logical rings need. */
static uint32_t phase_steps(const struct torus *padded)
{
    uint32_t rows = ring_steps(padded->size[0] / 2), columns = ring_steps(padded->size[1] / 2);
    return rows > columns ? rows : columns;
}

static uint32_t at2_max_legs(const struct torus *t)
{
    if (is_ring(t))
        return algorithm_ar.max_legs(t);
    return 2 + ring_steps(imaginary_size(t->size[0], MULTIPLE) / 2) +
           ring_steps(imaginary_size(t->size[1], MULTIPLE) / 2);
}

static void at2_period(const struct torus *t, uint32_t *period)
{
    if (is_ring(t))
        algorithm_ar.period(t, period);
    else
        imaginary_period(t, MULTIPLE, 4, period);
}

/* The direction to the exact opposite on a logical ring. The repair decides by the parity of the
 * offset in the other dimension, in logical hops: that splits the blocks of padded tori evenly,
 * too. */
static int tie(const struct torus *padded, unsigned dim, const uint32_t *offset, uint32_t to,
               bool repaired)
{
    if (!repaired || padded->size[dim] % 8 == 0)
        return ring_tie(to);
    return offset[1 - dim] / 2 % 2 == 0 ? 1 : -1;
}

static uint32_t padded_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                             bool repaired, struct leg *legs)
{
    uint32_t at[2], offset[2];
    int direction[2];
    uint32_t count = 0;

    for (unsigned i = 0; i < 2; i++) {
        at[i] = from[i];
        offset[i] = (to[i] + padded->size[i] - from[i]) % padded->size[i];
        direction[i] = offset[i] < padded->size[i] / 2 ? 1 : -1;
    }

    /* Phase 1. If both parities differ, the blocks for each quadrant of destinations leave by a
     * port of their own, so that all four ports carry the same. */
    unsigned dim = direction[0] == direction[1] ? 0 : 1;
    for (unsigned i = 0; i < 2; i++, dim = 1 - dim) {
        if (offset[dim] % 2 != 0) {
            legs[count] = (struct leg){
                .step = count, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)direction[dim]};
            count++;
            at[dim] = (at[dim] + padded->size[dim] + (uint32_t)direction[dim]) % padded->size[dim];
        }
    }

    /* Phases 2 and 3. x+y now has the parity of the destination's x+y, and keeps it. */
    dim = (to[0] + to[1]) % 2 == 0 ? 1 : 0;
    for (unsigned i = 0; i < 2; i++, dim = 1 - dim) {
        struct ring ring = {.nodes = padded->size[dim] / 2,
                            .step = 2 + i * phase_steps(padded),
                            .stride = 2,
                            .dim = (uint8_t)dim};
        count += ring_route(&ring, at[dim] / 2, to[dim] / 2,
                            tie(padded, dim, offset, to[dim] / 2, repaired), legs + count);
    }
    return count;
}

static uint32_t repaired_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                               struct leg *legs)
{
    return padded_route(padded, from, to, true, legs);
}

static uint32_t printed_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                              struct leg *legs)
{
    return padded_route(padded, from, to, false, legs);
}

#define AT2(identifier, text, on_padded, rule, blocks)                                             \
    static int identifier##_accepts(const struct torus *t, struct error *e)                        \
    {                                                                                              \
        return accepts(&algorithm_##identifier, t, e);                                             \
    }                                                                                              \
    static uint32_t identifier##_route(const struct torus *t, uint32_t source,                     \
                                       uint32_t destination, uint32_t segment, struct leg *legs)   \
    {                                                                                              \
        if (is_ring(t))                                                                            \
            return algorithm_ar.route(t, source, destination, segment, legs);                      \
        return imaginary_route(t, MULTIPLE, on_padded, source, destination, legs);                 \
    }                                                                                              \
    const struct algorithm algorithm_##identifier = {                                              \
        .name = text,                                                                              \
        .summary = "torus: two steps to the destination's parities, then AR on rows and "          \
                   "columns at the same time" rule,                                                \
        .accepts_text = "two dimensions that wrap",                                                \
        .startups = "c/2 + 2, c the larger size, both multiples of 4 (others: no more than the "   \
                    "next multiples; ring: ar's)",                                                 \
        .transmission = blocks,                                                                    \
        .source = "Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, "   \
                  "section 4",                                                                     \
        .port_model = PORT_MODEL_ALL,                                                              \
        .segments = 1,                                                                             \
        .accepts = identifier##_accepts,                                                           \
        .max_legs = at2_max_legs,                                                                  \
        .period = at2_period,                                                                      \
        .route = identifier##_route,                                                               \
    };

AT2(at2, "at2", repaired_route, ", repaired for sizes of 4 mod 8",
    "r*c^2/8, both multiples of 4 (some r != c: critical path)")
AT2(at2_printed, "at2-printed", printed_route, ", as printed",
    "r*c^2/8 if c is a multiple of 8, else r*c^2/8 + r; both multiples of 4 (some r != c: critical "
    "path)")
