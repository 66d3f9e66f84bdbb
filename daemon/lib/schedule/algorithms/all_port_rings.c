#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rings.h"

uint32_t imaginary_size(uint32_t size, uint32_t multiple)
{
    return size == 1 ? 1 : (size + multiple - 1) / multiple * multiple;
}

/* Real node x of `size` is at position ceil(x * padded / size), so the real node at or before a
 * position is floor(position * size / padded). A walk past the ring's end has positions from
 * `padded` on, and hosts from `size` on. */
static uint32_t position(uint32_t x, uint32_t size, uint32_t padded)
{
    return (uint32_t)(((uint64_t)x * padded + size - 1) / size);
}

static uint32_t host(uint32_t position, uint32_t size, uint32_t padded)
{
    return (uint32_t)((uint64_t)position * size / padded);
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void imaginary_period(const struct torus *t, uint32_t multiple, uint32_t padded_period,
                      uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++) {
        /* The smallest number of real nodes that cover a multiple of padded_period positions. */
        uint32_t periods = imaginary_size(t->size[i], multiple) / padded_period;
        period[i] = t->size[i] / common_divisor(t->size[i], periods);
    }
}

uint32_t imaginary_route(const struct torus *t, uint32_t multiple, padded_route_fn *route,
                         uint32_t source, uint32_t destination, struct leg *legs)
{
    struct torus padded = *t;
    uint32_t at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t count = 0;

    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    padded.nodes = 1;
    for (unsigned i = 0; i < t->dims; i++) {
        padded.size[i] = imaginary_size(t->size[i], multiple);
        padded.nodes *= padded.size[i];
        at[i] = position(at[i], t->size[i], padded.size[i]);
        to[i] = position(to[i], t->size[i], padded.size[i]);
    }

    uint32_t padded_count = route(&padded, at, to, legs);
    for (unsigned i = 0; i < t->dims; i++)
        at[i] += padded.size[i]; /* so that a leg in direction - does not go below 0 */
    for (uint32_t i = 0; i < padded_count; i++) {
        struct leg leg = legs[i];
        uint32_t *x = &at[leg.dim];
        uint32_t before = host(*x, t->size[leg.dim], padded.size[leg.dim]);

        *x += (uint32_t)(leg.direction * leg.hops);
        uint32_t after = host(*x, t->size[leg.dim], padded.size[leg.dim]);
        leg.hops = (uint16_t)(after > before ? after - before : before - after);
        if (leg.hops > 0)
            legs[count++] = leg;
    }
    return count;
}

/* Writes the legs from ring node `from` to ring node `to`. `tie` is the direction if they are exact
 * opposites. Returns how many: at most ring_steps(), 0 if the nodes are the same. */
static uint32_t ring_route(const struct ring *ring, uint32_t from, uint32_t to, int tie,
                           struct leg *legs)
{
    uint32_t n = ring->nodes;
    uint32_t offset = (to + n - from) % n;
    int direction = 2 * offset < n ? 1 : 2 * offset > n ? -1 : tie;
    uint32_t hops = direction > 0 ? offset : n - offset;
    uint32_t step = ring->step;
    uint32_t count = 0;

    if (offset == 0)
        return 0;

    struct leg leg = {.dim = ring->dim, .direction = (int8_t)direction};

    /* Stage 1: one hop to a node of the destination's parity. */
    if (hops % 2 != 0) {
        leg.step = step + (hops == 1 ? ring->late : 0);
        leg.hops = ring->stride;
        legs[count++] = leg;
    }
    step++;
    /* Two hops a step, in stage 2 or stage 3. In stage 2 even nodes send + and odd nodes -, in
     * stage 3 the other way round. */
    if ((direction > 0) != (to % 2 == 0))
        step += n / 4 + ring->pause;
    for (hops /= 2; hops > 0; hops--) {
        leg.step = step++;
        leg.hops = (uint16_t)(2 * ring->stride);
        legs[count++] = leg;
    }
    return count;
}

/* AR: complete exchange on an all-port ring of p nodes, p even. Liu, Gu, Bi, Tu, Dong: Optimal
 * All-to-All Personalized Communication in All-Port Tori, section 3.
 *
 * At most one hop brings a block to a node of its destination's parity. From there even nodes pass
 * blocks to even nodes and odd nodes to odd nodes, two hops a step, in both directions at once.
 * ring_route() has the rule for one block.
 * - Stage 1 (one step): blocks whose destination has the other parity make one hop.
 * - Stage 2 (floor(p/4) steps): even nodes send in direction +, odd nodes in direction -.
 * - Stage 3 (ceil(p/4) - 1 steps): even nodes send in direction -, odd nodes in direction +.
 *
 * The paper asks for p >= 4. A ring of 2 works too, as one swap. A ring of odd size gets one
 * imaginary node (rings.h). */

/* The dimension with more than one node; if there is none, the last one. */
static unsigned ring_dim(const struct torus *t)
{
    unsigned dim = 0;
    while (dim + 1 < t->dims && t->size[dim] == 1)
        dim++;
    return dim;
}

static bool ar_takes(const struct torus *t)
{
    unsigned dim = ring_dim(t);

    return t->size[dim] == t->nodes && (t->nodes == 1 || t->wrap[dim]);
}

static uint32_t ar_max_legs(const struct torus *t)
{
    return ring_steps(imaginary_size(t->nodes, 2));
}

static void ar_period(const struct torus *t, uint32_t *period)
{
    imaginary_period(t, 2, 2, period);
}

static uint32_t ar_padded_route(const struct torus *padded, const uint32_t *from,
                                const uint32_t *to, struct leg *legs)
{
    unsigned dim = ring_dim(padded);
    struct ring ring = {.nodes = padded->size[dim], .stride = 1, .dim = (uint8_t)dim};
    return ring_route(&ring, from[dim], to[dim], ring_tie(to[dim]), legs);
}

static uint32_t ar_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return imaginary_route(t, 2, ar_padded_route, source, destination, legs);
}

const struct algorithm algorithm_ar = {
    .name = "ar",
    .summary = "ring: one hop to the destination's parity, then two hops a step in both directions",
    .accepts_text = "a ring: one dimension that wraps, all others of size 1",
    .startups = "p/2 (odd p: (p+1)/2)",
    .transmission = "ceil(p^2/8), p even",
    .source = "Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, "
              "section 3",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = ar_takes,
    .max_legs = ar_max_legs,
    .period = ar_period,
    .route = ar_route,
};

/* AT2: complete exchange on an all-port torus of two dimensions, r x c. Liu, Gu, Bi, Tu, Dong:
 * Optimal All-to-All Personalized Communication in All-Port Tori, section 4.
 *
 * At most two hops bring a block to a node whose coordinates have the parities of its
 * destination's. That node and the destination are on logical rings, which consist of every second
 * node of a row or column. On these the block moves by AR.
 *
 * Let a node have the coordinates (x, y), in dimensions 0 and 1.
 * - Phase 1 (2 steps): one hop along each dimension in which the parities differ.
 * - Phases 2 and 3: AR on the logical rings of one dimension, then of the other. Nodes with x + y
 *   even (the paper's groups G00 and G11) begin with their row, all others with their column. So
 *   all channels are busy in both phases.
 *
 * Lemma 4 promises r*c^2/8 blocks, the lower bound. The algorithm as printed misses it for two
 * reasons. So there are two algorithms, which differ only in what follows:
 * - A size of 4 mod 8. Then opposite nodes of a logical ring are an odd number of logical hops
 *   apart, and in stage 1 of AR a node sends all blocks for its opposite in one direction. On a
 *   single ring that is one block, the reason for the ceil() in lemma 2. Here it is one block for
 *   each offset in the other dimension. `at2` repairs this: half of these blocks go each way
 *   (tie()).
 * - Two sizes r < c. The lemma counts the longer rings, of c/2 nodes. As printed, the shorter rings
 *   have some of their heaviest steps while the longer ones have light steps. In `at2` they have
 *   them together (fit_to_longer()), and lemma 4 holds in lockstep, except where r is a multiple of
 *   8, c is not, and 7r > 6c: there the first steps of stage 2 cost a little more (32x36: 5192
 *   blocks, lemma 5184), and only the critical path (verify.h) is r*c^2/8.
 *
 * `at2-printed` runs AR as printed. Its critical path is r*c^2/8 if c is a multiple of 8, otherwise
 * r blocks longer: 12 blocks on 4x4 (lemma: 8), 76 on 4x12 (72), 228 on 12x12 (216), 152 on 8x12
 * (144). In lockstep it costs more on some tori with r != c: 424 blocks on 12x16 (lemma: 384).
 *
 * Sizes that are not multiples of four get imaginary nodes (rings.h). If one of the two
 * dimensions has a single node, the torus is a ring and runs AR. */

enum { MULTIPLE = 4 };

static bool is_ring(const struct torus *t)
{
    return t->size[0] == 1 || t->size[1] == 1;
}

static bool at2_takes(const struct torus *t)
{
    bool taken = t->dims == 2;
    for (unsigned i = 0; taken && i < 2; i++)
        taken = t->wrap[i] || t->size[i] == 1;
    return taken;
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

/* Whether the blocks for the opposite node of a logical ring are to be split. They need it if they
 * are an odd number of logical hops away, except on shorter rings beside rings on which that number
 * is even: there stage 1 has time for them, and stage 3 has not. */
static bool is_split(const struct torus *padded, unsigned dim)
{
    bool shorter = padded->size[dim] < padded->size[1 - dim];

    return padded->size[dim] % 8 != 0 && !(shorter && padded->size[1 - dim] % 8 == 0);
}

/* Divides the blocks of a ring by the parity of their offset in the other dimension, in logical
 * hops: that halves them on padded tori, too. */
static bool is_in_first_half(unsigned dim, const uint32_t *offset)
{
    return offset[1 - dim] / 2 % 2 == 0;
}

/* The direction to the exact opposite on a logical ring. */
static int tie(const struct torus *padded, unsigned dim, const uint32_t *offset, uint32_t to,
               bool repaired)
{
    if (!repaired || !is_split(padded, dim))
        return ring_tie(to);
    return is_in_first_half(dim, offset) ? 1 : -1;
}

/* Spreads the steps of shorter rings over those of the longer ones, so that no step has more blocks
 * on them.
 * - Stage 3 begins on all rings at the same time. In each stage, step by step, the shorter rings then
 *   have at most the blocks of the longer ones.
 * - The exception is stage 1 if the shorter rings' size is a multiple of 4 logical hops, and that of
 *   the longer ones is not: p = 4m and P = 4M + 2 nodes, m <= M. Their channels carry 16mM + 8m and
 *   16mM + 4m blocks then. So half of the blocks for the next node, 8M + 4, make their hop in the
 *   first step after the shorter rings' stage 3, in which the longer ones carry 32m(M - m) + 20m. */
static void fit_to_longer(const struct torus *padded, const uint32_t *offset, struct ring *ring)
{
    uint32_t longer = padded->size[1 - ring->dim] / 2;

    if (ring->nodes >= longer)
        return;
    ring->pause = longer / 4 - ring->nodes / 4;
    if (ring->nodes % 4 == 0 && longer % 4 != 0 && is_in_first_half(ring->dim, offset))
        ring->late = longer / 4 + ring->nodes / 4;
}

static uint32_t at2_padded_route(const struct torus *padded, const uint32_t *from,
                                 const uint32_t *to, bool repaired, struct leg *legs)
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
        if (repaired)
            fit_to_longer(padded, offset, &ring);
        count += ring_route(&ring, at[dim] / 2, to[dim] / 2,
                            tie(padded, dim, offset, to[dim] / 2, repaired), legs + count);
    }
    return count;
}

static uint32_t repaired_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                               struct leg *legs)
{
    return at2_padded_route(padded, from, to, true, legs);
}

static uint32_t printed_route(const struct torus *padded, const uint32_t *from, const uint32_t *to,
                              struct leg *legs)
{
    return at2_padded_route(padded, from, to, false, legs);
}

#define AT2(identifier, text, on_padded, rule, blocks)                                             \
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
        .takes = at2_takes,                                                                        \
        .max_legs = at2_max_legs,                                                                  \
        .period = at2_period,                                                                      \
        .route = identifier##_route,                                                               \
    };

AT2(at2, "at2", repaired_route, ", repaired for sizes of 4 mod 8 and r != c",
    "r*c^2/8, both multiples of 4 (r < c, r a multiple of 8, c not, and 7r > 6c: critical path)")
AT2(at2_printed, "at2-printed", printed_route, ", as printed",
    "r*c^2/8 if c is a multiple of 8, else r*c^2/8 + r; both multiples of 4 (some r != c: critical "
    "path)")
