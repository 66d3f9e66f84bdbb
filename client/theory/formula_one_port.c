#include "client/theory/formula_one_port.h"

#include "client/theory/formula_rows.h"
#include "daemon/lib/schedule/bits.h"

#define PAPER                                                                                      \
    "Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized "          \
    "Communication on Multidimensional Tori, "

/* The transmission of PTk and MTk in closed form, which is the same for both. */
static double blocks(uint64_t k, uint64_t longest, double nodes)
{
    uint64_t rings = k * k * (longest * longest / (8 * k * k));
    return ((double)rings + (double)(k * k / 4 * longest) + (double)(k * longest) / 2) * nodes /
           (double)longest;
}

/* Startups of k rounds of AR1, without the last swap of each. */
static double rounds(uint64_t k, uint64_t longest)
{
    return (double)(k * ((longest + 4 * k - 1) / (4 * k)));
}

struct cost_counts formula_pt_counts(unsigned k, uint32_t longest, double nodes)
{
    return (struct cost_counts){
        .startups = rounds(k, longest) + k * (power_of(k) + 1),
        .transmission = blocks(k, longest, nodes),
    };
}

struct cost_counts formula_mt_counts(unsigned k, uint32_t longest, double nodes)
{
    return (struct cost_counts){
        .startups = rounds(k, longest) + k * k,
        .transmission = blocks(k, longest, nodes),
    };
}

/* AR1 on logical rings of `ring` nodes, with messages of nodes/ring blocks. Each doubling of the
 * dimensions runs both halves, and then a swap of half the blocks in each dimension. */
struct cost_counts formula_pt_recurrence_counts(unsigned k, uint32_t longest, double nodes)
{
    uint32_t ring = longest / k;
    struct cost_counts c = formula_mt_counts(1, ring, nodes);

    for (unsigned dims = 2; dims <= k; dims *= 2) {
        c.startups = 2 * c.startups + dims;
        c.transmission = 2 * c.transmission + dims * nodes / 2;
    }
    return c;
}

static struct cost_counts pt_counts(const struct torus *t)
{
    return formula_pt_counts(t->dims, torus_longest(t), t->nodes);
}

static struct cost_counts pt_recurrence_counts(const struct torus *t)
{
    return formula_pt_recurrence_counts(t->dims, torus_longest(t), t->nodes);
}

static struct cost_counts mt_counts(const struct torus *t)
{
    return formula_mt_counts(t->dims, torus_longest(t), t->nodes);
}

static struct cost_counts ar1_counts(const struct torus *t)
{
    return formula_mt_counts(1, t->nodes, t->nodes);
}

static bool mt_covers(const struct torus *t)
{
    return torus_multiples(t, 2 * t->dims);
}

static bool pt_covers(const struct torus *t)
{
    return is_power_of_two(t->dims) && mt_covers(t);
}

static bool at2_1port_covers(const struct torus *t)
{
    return t->dims == 2 && mt_covers(t);
}

#define MULTIPLES "all sizes multiples of 2k"
#define CLOSED_FORM "(k^2*floor(n^2/8k^2) + (floor(k^2/4) + k/2)*n) * N/n"

const struct formula formula_ar1 = {
    .algorithm = "ar1",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "rings of an even number of nodes, 4 at least",
    .startups = "ceil(p/4) + 1",
    .transmission = "floor(p^2/8) + p/2",
    .rearranged = "",
    .source = PAPER "section 3",
    .covers = torus_even_ring,
    .counts = ar1_counts,
};

const struct formula formula_at2_1port = {
    .algorithm = "at2-1port",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "r x c tori, both multiples of 4",
    .startups = "2*ceil(c/8) + 4, c the larger size",
    .transmission = "4*r*floor(c^2/32) + 2*r*c",
    .rearranged = "",
    .source = PAPER "section 4 and Table 1",
    .covers = at2_1port_covers,
    .counts = pt_counts,
};

const struct formula formula_pt = {
    .algorithm = "pt",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "tori of 1, 2, 4 or 8 dimensions, " MULTIPLES,
    .startups = "k*(ceil(n/4k) + log2 k + 1), n the largest size",
    .transmission = CLOSED_FORM,
    .rearranged = "",
    .source = PAPER "section 5.1 and Table 1",
    .covers = pt_covers,
    .counts = pt_counts,
};

const struct formula formula_pt_recurrence = {
    .algorithm = "pt-recurrence",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "tori of 1, 2, 4 or 8 dimensions, " MULTIPLES,
    .startups = "k*(ceil(n/4k) + log2 k + 1), n the largest size",
    .transmission = "(k^2*floor(n^2/8k^2) + k/2*(1 + log2 k)*n) * N/n",
    .rearranged = "",
    .source = PAPER "section 5.1, the recurrence instead of its closed form",
    .covers = pt_covers,
    .counts = pt_recurrence_counts,
};

const struct formula formula_mt = {
    .algorithm = "mt",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "tori of k dimensions, " MULTIPLES,
    .startups = "k*ceil(n/4k) + k^2, n the largest size",
    .transmission = CLOSED_FORM,
    .rearranged = "",
    .source = PAPER "section 5.3 and Table 1",
    .covers = mt_covers,
    .counts = mt_counts,
};
