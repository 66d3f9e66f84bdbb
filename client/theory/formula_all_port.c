/* Formulas of Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized Communication in All-Port
 * Tori: for their own algorithms (lemmas 2 and 4), for those with which Table II compares them, for
 * the direct exchange that section 1 mentions, and for the earlier scheme of section 4.A. */
#include "client/theory/formula_one_port.h"
#include "client/theory/formula_rows.h"

#define PAPER "Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, "

static double nodes(const struct torus *t)
{
    return t->nodes;
}

/* ---- AR and AT2 ------------------------------------------------------------------------------ */

static struct cost_counts ar_counts(const struct torus *t)
{
    uint64_t p = t->nodes;
    return (struct cost_counts){
        .startups = (double)p / 2,
        .transmission = (double)((p * p + 7) / 8),
    };
}

const struct formula formula_ar = {
    .algorithm = "ar",
    .port_model = PORT_MODEL_ALL,
    .covers_text = "rings of an even number of nodes, 4 at least",
    .startups = "p/2",
    .transmission = "ceil(p^2/8)",
    .rearranged = "",
    .source = PAPER "lemma 2",
    .covers = torus_even_ring,
    .counts = ar_counts,
};

static bool at2_covers(const struct torus *t)
{
    return t->dims == 2 && torus_multiples(t, 4);
}

/* Lemma 4 holds for AT2 as printed only if the larger size is a multiple of 8 (all_port_rings.c). */
static bool at2_printed_covers(const struct torus *t)
{
    return at2_covers(t) && torus_longest(t) % 8 == 0;
}

static struct cost_counts at2_counts(const struct torus *t)
{
    double c = torus_longest(t);
    return (struct cost_counts){.startups = c / 2 + 2, .transmission = nodes(t) * c / 8};
}

/* Blocks are rearranged before each of the three phases; on a ring they are not. */
static double at2_rearrange(const struct torus *t)
{
    return torus_longest(t) == t->nodes ? 0 : 3 * nodes(t);
}

#define AT2(identifier, name, where, text)                                                         \
    const struct formula formula_##identifier = {                                                  \
        .algorithm = name,                                                                         \
        .port_model = PORT_MODEL_ALL,                                                              \
        .covers_text = text,                                                                       \
        .startups = "c/2 + 2",                                                                     \
        .transmission = "r*c^2/8",                                                                 \
        .rearranged = "3*r*c",                                                                     \
        .source = PAPER "lemma 4 and section 4.D",                                                 \
        .covers = where,                                                                           \
        .counts = at2_counts,                                                                      \
        .rearrange = at2_rearrange,                                                                \
    };

AT2(at2, "at2", at2_covers, "r x c tori, both multiples of 4")
AT2(at2_printed, "at2-printed", at2_printed_covers,
    "r x c tori, both multiples of 4 and the larger one of 8")

/* ---- Algorithms that the paper compares with ------------------------------------------------- */

/* 2^d x 2^d with d at least 2. */
static bool power_square_covers(const struct torus *t)
{
    return t->dims == 2 && torus_multiples(t, 4) && t->size[0] == t->size[1] &&
           (t->size[0] & (t->size[0] - 1)) == 0;
}

#define POWER_SQUARE "2^d x 2^d tori, d at least 2"

/* On 4x4, a node with one port takes 15 block times to receive its blocks. Formulas that give less
 * there hold from 8x8 on. */
static bool larger_power_square_covers(const struct torus *t)
{
    return power_square_covers(t) && t->size[0] >= 8;
}

#define LARGER_POWER_SQUARE "2^d x 2^d tori, d at least 3"

/* d, for a size of 2^d. */
static double exponent(uint32_t size)
{
    unsigned d = 0;
    while (size >> d > 1)
        d++;
    return d;
}

static struct cost_counts tseng_counts(const struct torus *t)
{
    double side = t->size[0];
    return (struct cost_counts){
        .startups = side / 2 + 2,
        .transmission = nodes(t) * side / 4 + nodes(t),
    };
}

static double tseng_rearrange(const struct torus *t)
{
    return (t->size[0] / 2.0 + 1) * nodes(t);
}

const struct formula formula_tseng = {
    .algorithm = "tseng",
    .port_model = PORT_MODEL_ONE,
    .covers_text = POWER_SQUARE,
    .startups = "2^(d-1) + 2",
    .transmission = "2^(3d-2) + 2^(2d)",
    .rearranged = "(2^(d-1) + 1) * 2^(2d)",
    .source = "Tseng, Lin, Gupta, Panda, Bandwidth-Optimal Complete Exchange on Wormhole-Routed "
              "2D/3D Torus Networks, as in " PAPER "Table II",
    .covers = power_square_covers,
    .counts = tseng_counts,
    .rearrange = tseng_rearrange,
};

static double suh_yalamanchili_blocks(const struct torus *t)
{
    double side = t->size[0], d = exponent(t->size[0]);
    return 9 * nodes(t) * side / 16 + (d * d - 5 * d + 3) * nodes(t) / 2;
}

static struct cost_counts suh_yalamanchili_counts(const struct torus *t)
{
    return (struct cost_counts){
        .startups = 3 * exponent(t->size[0]) - 3,
        .transmission = suh_yalamanchili_blocks(t),
    };
}

const struct formula formula_suh_yalamanchili = {
    .algorithm = "suh-yalamanchili",
    .port_model = PORT_MODEL_ONE,
    .covers_text = LARGER_POWER_SQUARE,
    .startups = "3d - 3",
    .transmission = "9*2^(3d-4) + (d^2 - 5d + 3) * 2^(2d-1)",
    .rearranged = "as many as are transmitted",
    .source = "Suh, Yalamanchili, All-to-All Communication with Minimum Start-Up Costs in 2D/3D "
              "Tori and Meshes, as in " PAPER "Table II",
    .covers = larger_power_square_covers,
    .counts = suh_yalamanchili_counts,
    .rearrange = suh_yalamanchili_blocks,
};

static bool suh_shin_covers(const struct torus *t)
{
    return t->dims >= 2 && torus_multiples(t, 4);
}

static struct cost_counts suh_shin_counts(const struct torus *t)
{
    double k = t->dims, longest = torus_longest(t);
    return (struct cost_counts){
        .startups = k * (longest / 4 + 1),
        .transmission = (k * longest / 8 + k / 2) * nodes(t),
    };
}

/* Table II is for two dimensions; the formula for more counts no rearrangement. */
static double suh_shin_rearrange(const struct torus *t)
{
    return t->dims == 2 ? 3 * nodes(t) : 0;
}

const struct formula formula_suh_shin = {
    .algorithm = "suh-shin",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "tori of two or more dimensions, all multiples of 4",
    .startups = "k * (n/4 + 1), n the largest size",
    .transmission = "(k*n/8 + k/2) * N",
    .rearranged = "3*N in two dimensions",
    .source = "Suh, Shin, All-to-All Personalized Communication in Multidimensional Torus and Mesh "
              "Networks, as in " PAPER "Table II, and for k dimensions in Liu et al., Efficient "
              "and Scalable Algorithms for All-to-All Personalized Communication on "
              "Multidimensional Tori, Table 1",
    .covers = suh_shin_covers,
    .counts = suh_shin_counts,
    .rearrange = suh_shin_rearrange,
};

/* The direct exchange of references [3, 4]. No two messages share a channel, so the number of steps
 * is that of the blocks on a channel, the all-port bound. The paper names no port model; on 4x4 the
 * formula cannot hold with one port, because a node receives 15 blocks in 8 steps. */
static struct cost_counts tseng_gupta_counts(const struct torus *t)
{
    double steps = nodes(t) * t->size[0] / 8;
    return (struct cost_counts){.startups = steps, .transmission = steps};
}

const struct formula formula_tseng_gupta = {
    .algorithm = "tseng-gupta",
    .port_model = PORT_MODEL_ALL,
    .covers_text = POWER_SQUARE,
    .startups = "2^(3d-3)",
    .transmission = "2^(3d-3)",
    .rearranged = "",
    .source = "Tseng, Gupta, All-to-All Personalized Communication in a Wormhole-Routed Torus, and "
              "Lam, Huang, Sadayappan, Optimal Algorithms for All-to-All Personalized "
              "Communication on Rings and Two Dimensional Tori, as in " PAPER "section 1",
    .covers = power_square_covers,
    .counts = tseng_gupta_counts,
};

/* Section 4.A has no formula. Two swaps of N/2 blocks, then AR1 twice, on logical rings of c/2 nodes
 * with messages of 2r blocks; rings of two nodes need a single swap. */
static struct cost_counts squares_counts(const struct torus *t)
{
    uint32_t ring = torus_longest(t) / 2;
    struct cost_counts c = formula_mt_counts(1, ring, nodes(t));

    c.startups = 2 + 2 * (ring == 2 ? 1 : c.startups);
    c.transmission = nodes(t) + 2 * c.transmission;
    return c;
}

const struct formula formula_squares = {
    .algorithm = "squares",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "r x c tori, both multiples of 4",
    .startups = "2*ceil(c/8) + 4, c the larger size (c = 4: 4)",
    .transmission = "4*r*floor(c^2/32) + 2*r*c",
    .rearranged = "",
    .source = PAPER "section 4.A, with the cost of AR1 in Liu, Gu, Ren, Xiong: Efficient and "
                    "Scalable Algorithms for All-to-All Personalized Communication on "
                    "Multidimensional Tori, section 3",
    .covers = at2_covers,
    .counts = squares_counts,
};
