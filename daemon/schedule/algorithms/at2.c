/* AT2: complete exchange on an all-port torus of two dimensions. Liu, Gu, Bi, Tu, Dong: Optimal
 * All-to-All Personalized Communication in All-Port Tori, section 4.
 *
 * Phase 1 brings a block to a node whose coordinates have the parities of its destination's, in
 * one hop for each parity that is wrong. Then that node and the destination are on logical rings of
 * every second node of a row and a column, and AR runs on these: nodes with x+y even take the row
 * in phase 2 and the column in phase 3, the others the other way round, so that every channel is
 * busy in both.
 *
 * Lemma 4, r*c^2/8 blocks (the lower bound), does not hold for this as it is printed. A size of
 * 4 mod 8 has logical rings whose opposite nodes are an odd number of logical hops apart. There AR
 * has every node send what is for its opposite the same way in stage 1; on a ring by itself, with
 * one such block a node, that is the ceil() in lemma 2, but here there is one for each offset in
 * the other dimension. So there are two algorithms:
 * - `at2` is repaired: half of these blocks go each way. Lemma 4 holds for all multiples of four (as
 *   the critical path where the two sizes differ, see verify.h).
 * - `at2-printed` runs AR as it is printed. The lemma holds if c is a multiple of 8; else the
 *   critical path is r blocks longer: 4x4 takes 12 where the lemma has 8, 4x12 76 (72), 12x12 228
 *   (216), 8x12 152 (144).
 * Where no size is 4 mod 8 both are the same.
 *
 * Both sizes multiples of four; others through imaginary nodes. A ring in one dimension is AR. */
#include "daemon/schedule/algorithms/imaginary.h"
#include "daemon/schedule/algorithms/ring.h"
#include "daemon/schedule/algorithms/rows.h"

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

/* Steps of phase 2, and of phase 3: those of the longer rings. The shorter ones start with them. */
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

/* The direction to the exact opposite on a logical ring. The repair splits by the parity of the
 * offset in the other dimension in logical hops, which splits the padded tori's blocks too. */
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

    /* Phase 1. Where both parities are wrong each quadrant of destinations leaves by a port of its
     * own, so that all four carry as much. */
    unsigned dim = direction[0] == direction[1] ? 0 : 1;
    for (unsigned i = 0; i < 2; i++, dim = 1 - dim) {
        if (offset[dim] % 2 != 0) {
            legs[count] = (struct leg){
                .step = count, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)direction[dim]};
            count++;
            at[dim] = (at[dim] + padded->size[dim] + (uint32_t)direction[dim]) % padded->size[dim];
        }
    }

    /* Phases 2 and 3. x+y has the parity of the destination's now, and keeps it. */
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
        .summary = "torus: two steps to the destination's parities, then AR on rows beside "       \
                   "columns" rule,                                                                 \
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
