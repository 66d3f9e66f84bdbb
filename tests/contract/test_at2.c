/* at2 and at2-printed against Fig. 5 and Fig. 2 of Liu, Gu, Bi, Tu, Dong: Optimal All-to-All
 * Personalized Communication in All-Port Tori, written out independently: every block must be in
 * the combined message in which the paper sends it. And lemma 4 for both.
 *
 * Readings of Fig. 5: "x = (x0 mod 2) or ..." in a set means all x of x0's parity, as the counts in
 * the proof of lemma 4 show. A node P(x0, y0) is in row x0, so `row` rings run along y. The nodes
 * of a logical ring are numbered by half their coordinates. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/contract/printed.h"
#include "tests/support/cmocka.h"

/* Fig. 5, phase 1. */
static void phase_1(struct block *b)
{
    int r = b->size[0], c = b->size[1], x0 = b->at[0], y0 = b->at[1], x = b->to[0], y = b->to[1];
    bool x_even = (x - x0) % 2 == 0, y_even = (y - y0) % 2 == 0;
    /* x0 + 2i - 1 for 1 <= i <= r/4, and x0 - 2i + 1; the same for y */
    bool x_plus = listed(x, x0 + 1, x0 + r / 2 - 1, 2, r);
    bool x_minus = listed(x, x0 - r / 2 + 1, x0 - 1, 2, r);
    bool y_plus = listed(y, y0 + 1, y0 + c / 2 - 1, 2, c);
    bool y_minus = listed(y, y0 - c / 2 + 1, y0 - 1, 2, c);

    if (x_plus && (y_even || y_plus))
        send(b, 0, 0, 1); /* bottom */
    else if (y_plus && (x_even || x_minus))
        send(b, 0, 1, 1); /* right */
    else if (x_minus && (y_even || y_minus))
        send(b, 0, 0, -1); /* top */
    else if (y_minus && (x_even || x_plus))
        send(b, 0, 1, -1); /* left */

    if (x_plus && y_minus)
        send(b, 1, 0, 1); /* R*, to the bottom */
    else if (x_plus && y_plus)
        send(b, 1, 1, 1); /* T*, to the right */
    else if (x_minus && y_plus)
        send(b, 1, 0, -1); /* L*, to the top */
    else if (x_minus && y_minus)
        send(b, 1, 1, -1); /* B*, to the left */
}

/* Whether, by Fig. 2, node `at` sends the block from s to d in direction + or - in stage 1, or in
 * stage 2 or 3 for this k, on a ring of p. */
struct sends {
    bool plus, minus;
};

static struct sends stage_1(int at, int d, int p)
{
    int f = p / 4, g = (p + 3) / 4;

    if (at % 2 == 0)
        return (struct sends){listed(d, at + 1, at + 2 * f - 1, 2, p),
                              listed(d, at + 2 * f + 1, at + p - 1, 2, p)};
    return (struct sends){listed(d, at + 1, at + 2 * g - 1, 2, p),
                          listed(d, at + 2 * g + 1, at + p - 1, 2, p)};
}

/* `at` is 2i (even nodes) or 2i+1 (odd nodes). */
static struct sends stage_2(int at, int s, int d, int k, int p)
{
    int f = p / 4, g = (p + 3) / 4;
    struct sends sends = {false, false};

    if (at % 2 == 0) {
        if ((s - (at - 2 * k)) % p == 0)
            sends.plus = listed(d, at + 2, at + 2 * f - 2 * k, 2, p);
        else if ((s - (at - 1 - 2 * k)) % p == 0)
            sends.plus = listed(d, at + 2, at + 2 * (g - 1) - 2 * k, 2, p);
    } else {
        if ((s - (at + 2 * k)) % p == 0)
            sends.minus = listed(d, at + 2 * g + 2 * k, at + p - 2, 2, p);
        else if ((s - (at + 1 + 2 * k)) % p == 0)
            sends.minus = listed(d, at + 2 * (f + 1) + 2 * k, at + p - 2, 2, p);
    }
    return sends;
}

static struct sends stage_3(int at, int s, int d, int k, int p)
{
    int f = p / 4, g = (p + 3) / 4;
    struct sends sends = {false, false};

    if (at % 2 == 0) {
        if ((s - (at + 2 * k)) % p == 0)
            sends.minus = listed(d, at + 2 * (f + 1) + 2 * k, at + p - 2, 2, p);
        else if ((s - (at + 1 + 2 * k)) % p == 0)
            sends.minus = listed(d, at + 2 * (g + 1) + 2 * k, at + p - 2, 2, p);
    } else {
        if ((s - (at - 2 * k)) % p == 0)
            sends.plus = listed(d, at + 2, at + 2 * (g - 1) - 2 * k, 2, p);
        else if ((s - (at - 1 - 2 * k)) % p == 0)
            sends.plus = listed(d, at + 2, at + 2 * (f - 1) - 2 * k, 2, p);
    }
    return sends;
}

/* Fig. 2 along `dim`, on a logical ring of every `stride`-th node, from `step` on. */
static void run_ar(struct block *b, unsigned dim, int stride, uint32_t step)
{
    int p = b->size[dim] / stride, f = p / 4, g = (p + 3) / 4;
    int s = b->at[dim] / stride, d = b->to[dim] / stride;

    for (int i = 0; i < 1 + f + g - 1; i++) {
        int at = b->at[dim] / stride;
        struct sends sends = i == 0   ? stage_1(at, d, p)
                             : i <= f ? stage_2(at, s, d, i - 1, p)
                                      : stage_3(at, s, d, i - 1 - f, p);
        if (at == d)
            continue; /* extracted */
        assert_false(sends.plus && sends.minus);
        if (sends.plus || sends.minus)
            send(b, step + (uint32_t)i, dim, (sends.plus ? 1 : -1) * stride * (i == 0 ? 1 : 2));
    }
    assert_int_equal(b->at[dim], b->to[dim]);
}

static struct block start(const struct torus *t, uint32_t s, uint32_t d)
{
    int c = (int)t->size[1];
    return (struct block){.size = {(int)t->size[0], c},
                          .at = {(int)s / c, (int)s % c},
                          .to = {(int)d / c, (int)d % c}};
}

/* Fig. 5. */
static struct block printed(const struct torus *t, uint32_t s, uint32_t d)
{
    struct block b = start(t, s, d);
    uint32_t phase = (t->size[0] > t->size[1] ? t->size[0] : t->size[1]) / 4;

    phase_1(&b);
    bool row_first = (b.at[0] + b.at[1]) % 2 == 0; /* G00 and G11 */
    run_ar(&b, row_first ? 1 : 0, 2, 2);
    run_ar(&b, row_first ? 0 : 1, 2, 2 + phase);
    return b;
}

static bool is_same(const struct block *b, const struct leg *legs, uint32_t count)
{
    bool same = b->legs == count;
    for (uint32_t i = 0; same && i < count; i++)
        same = b->leg[i].step == legs[i].step && b->leg[i].dim == legs[i].dim &&
               b->leg[i].hops == legs[i].hops && b->leg[i].direction == legs[i].direction;
    return same;
}

static const uint32_t sizes[] = {4, 8, 12, 16, 20};

#define EACH_SHAPE(t)                                                                              \
    for (size_t i_ = 0; i_ < sizeof sizes / sizeof sizes[0]; i_++)                                 \
        for (size_t j_ = 0; j_ < sizeof sizes / sizeof sizes[0]; j_++)                             \
            for (struct torus t = contract_rectangle(sizes[i_], sizes[j_]), *once_ = &t;           \
                 once_ != NULL; once_ = NULL)

TEST(ar_is_figure_2)
{
    for (uint32_t p = 4; p <= 40; p += 2) {
        struct torus t = contract_rectangle(1, p);
        for (uint32_t s = 0; s < p; s++) {
            for (uint32_t d = 0; d < p; d++) {
                struct leg legs[MOST_LEGS];
                struct block b = start(&t, s, d);
                if (s == d)
                    continue;
                run_ar(&b, 1, 1, 0);
                assert_true(
                    is_same(&b, legs, algorithm_route(algorithm_find("ar"), &t, s, d, 0, legs)));
            }
        }
    }
}

TEST(at2_printed_is_figure_5)
{
    const struct algorithm *a = algorithm_find("at2-printed");

    EACH_SHAPE(t)
    {
        for (uint32_t s = 0; s < t.nodes; s++) {
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[MOST_LEGS];
                struct block b = printed(&t, s, d);
                if (s != d)
                    assert_true(is_same(&b, legs, algorithm_route(a, &t, s, d, 0, legs)));
            }
        }
    }
}

/* The dimensions, as bits, in which AR takes the block to an exact opposite at an odd number of
 * logical hops. */
static unsigned odd_opposites(const struct torus *t, uint32_t s, uint32_t d)
{
    struct block b = start(t, s, d);
    unsigned found = 0;

    phase_1(&b);
    for (unsigned dim = 0; dim < 2; dim++)
        if (b.size[dim] % 8 == 4 && (b.at[dim] + b.size[dim] / 2 - b.to[dim]) % b.size[dim] == 0)
            found |= 1u << dim;
    return found;
}

/* Those of them that at2 splits: not on shorter rings beside rings without such opposites. */
static unsigned split_opposites(const struct torus *t, uint32_t s, uint32_t d)
{
    unsigned found = odd_opposites(t, s, d);

    for (unsigned dim = 0; dim < 2; dim++)
        if (t->size[dim] < t->size[1 - dim] && t->size[1 - dim] % 8 == 0)
            found &= ~(1u << dim);
    return found;
}

/* What at2 changes in the steps of a printed block: shorter rings begin stage 3 when the longer ones
 * do. Returns the leg with which half of the blocks wait until the step *late, those of one hop on a
 * shorter ring of 4m nodes beside rings of 4M + 2 nodes; or -1. */
static int fit_to_longer(struct block *b, uint32_t *late)
{
    int found = -1;

    for (uint32_t i = 0; i < b->legs; i++) {
        unsigned dim = b->leg[i].dim;
        uint32_t q = (uint32_t)b->size[dim] / 2, p = (uint32_t)b->size[1 - dim] / 2;
        uint32_t begin = b->leg[i].step < 2 + p / 2 ? 2 : 2 + p / 2;
        if (b->leg[i].step < 2 || q >= p)
            continue;
        bool first = b->leg[i].step == begin;
        if (b->leg[i].step - begin > q / 4)
            b->leg[i].step += p / 4 - q / 4;
        if (first && b->leg[i].hops == 2 && q % 4 == 0 && p % 4 == 2 &&
            (i + 1 == b->legs || b->leg[i + 1].dim != dim)) {
            found = (int)i;
            *late = begin + p / 4 + q / 4;
        }
    }
    return found;
}

/* How many more of a node's blocks for odd opposites along a dimension leave the node + than -. */
static void count_opposites(const struct torus *t, uint32_t s, unsigned opposites,
                            const struct leg *legs, uint32_t count, int (*lead)[2])
{
    uint32_t here = s;
    bool seen[2] = {false, false};

    for (uint32_t i = 0; i < count; i++) {
        if (legs[i].step >= 2 && !seen[legs[i].dim] && (opposites >> legs[i].dim & 1) != 0) {
            lead[here][legs[i].dim] += legs[i].direction;
            seen[legs[i].dim] = true;
        }
        here = torus_walk(t, here, legs[i].dim, legs[i].direction, legs[i].hops);
    }
}

/* at2 sends half of the odd opposites of every node each way, and half of the blocks that may wait later. It sends
 * all others as printed, but for the beginning of stage 3 on shorter rings. */
TEST(at2_is_figure_5_repaired)
{
    const struct algorithm *a = algorithm_find("at2");

    EACH_SHAPE(t)
    {
        static int lead[400][2], waiting[400];
        memset(lead, 0, sizeof lead);
        memset(waiting, 0, sizeof waiting);
        for (uint32_t s = 0; s < t.nodes; s++) {
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[MOST_LEGS];
                if (s == d)
                    continue;
                struct block b = printed(&t, s, d);
                uint32_t count = algorithm_route(a, &t, s, d, 0, legs), late = 0;
                unsigned opposites = split_opposites(&t, s, d);
                int waits = fit_to_longer(&b, &late);
                if (waits >= 0) {
                    bool is_late = legs[waits].step == late;
                    uint32_t here = s;
                    for (int i = 0; i < waits; i++)
                        here = torus_walk(&t, here, legs[i].dim, legs[i].direction, legs[i].hops);
                    waiting[here] += is_late ? 1 : -1;
                    if (is_late)
                        b.leg[waits].step = late;
                }
                if (opposites == 0)
                    assert_true(is_same(&b, legs, count));
                count_opposites(&t, s, opposites, legs, count, lead);
            }
        }
        for (uint32_t node = 0; node < t.nodes; node++) {
            assert_int_equal(lead[node][0], 0);
            assert_int_equal(lead[node][1], 0);
            assert_int_equal(waiting[node], 0);
        }
    }
}

/* r*c^2/8 blocks; as printed r more if c is 4 mod 8, and still more in lockstep on some tori. */
TEST(lemma_4_needs_the_repair)
{
    for (uint32_t r = 4; r <= 24; r += 4) {
        for (uint32_t c = r; c <= 24; c += 4) {
            struct torus t = contract_rectangle(r, c), transposed = contract_rectangle(c, r);
            uint32_t more = c % 8 == 4 ? r : 0;
            struct schedule_report p = contract_verify(&t, "at2-printed");
            assert_int_equal(contract_verify(&t, "at2").transmission, r * c * c / 8);
            assert_int_equal(p.critical_path, r * c * c / 8 + more);
            assert_int_equal(contract_verify(&transposed, "at2-printed").critical_path,
                             p.critical_path);
            assert_int_equal(p.startups, c / 2 + 2);
            assert_int_equal(p.contended_steps, 0);
            assert_true(p.minimal);
        }
    }
}

TEST(printed_figures)
{
    static const struct {
        uint32_t r, c;
        uint64_t printed, printed_path, repaired, repaired_path;
    } figures[] = {{4, 4, 12, 12, 8, 8},
                   {4, 12, 76, 76, 72, 72},
                   {12, 12, 228, 228, 216, 216},
                   {8, 12, 152, 152, 144, 144},
                   {12, 16, 424, 384, 384, 384},
                   {12, 20, 620, 612, 600, 600},
                   {20, 24, 1688, 1440, 1440, 1440},
                   {8, 8, 64, 64, 64, 64}};

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        struct torus t = contract_rectangle(figures[i].r, figures[i].c);
        struct schedule_report p = contract_verify(&t, "at2-printed"),
                               r = contract_verify(&t, "at2");
        assert_int_equal(p.transmission, figures[i].printed);
        assert_int_equal(p.critical_path, figures[i].printed_path);
        assert_int_equal(r.transmission, figures[i].repaired);
        assert_int_equal(r.critical_path, figures[i].repaired_path);
    }
}

TEST(at2_printed_every_rectangle)
{
    contract_every_rectangle("at2-printed", LARGEST * LARGEST);
}
