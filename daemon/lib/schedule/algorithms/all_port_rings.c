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
        leg.step = step;
        leg.hops = ring->stride;
        legs[count++] = leg;
    }
    step++;
    /* Two hops a step, in stage 2 or stage 3. In stage 2 even nodes send + and odd nodes -, in
     * stage 3 the other way round. */
    if ((direction > 0) != (to % 2 == 0))
        step += n / 4;
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

AT2(at2, "at2", repaired_route, ", repaired for sizes of 4 mod 8",
    "r*c^2/8, both multiples of 4 (some r != c: critical path)")
AT2(at2_printed, "at2-printed", printed_route, ", as printed",
    "r*c^2/8 if c is a multiple of 8, else r*c^2/8 + r; both multiples of 4 (some r != c: critical "
    "path)")
