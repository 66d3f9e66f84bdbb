#include "client/theory/formula.h"

#include <math.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/bits.h"
#include "daemon/lib/schedule/product.h"

/* ---- Tori that formulas cover ---------------------------------------------------------------- */

/* Whether every dimension wraps, and its size is a multiple of `multiple`. */
static bool are_multiples(const struct torus *t, uint32_t multiple)
{
    bool all = true;
    for (unsigned i = 0; i < t->dims; i++)
        all = all && t->wrap[i] && t->size[i] % multiple == 0;
    return all;
}

/* Nodes along the longest dimension. */
static uint32_t longest_of(const struct torus *t)
{
    uint32_t longest = 1;
    for (unsigned i = 0; i < t->dims; i++)
        longest = t->size[i] > longest ? t->size[i] : longest;
    return longest;
}

#define EVEN_RING "rings of an even number of nodes, 4 at least"

static bool is_even_ring(const struct torus *t)
{
    uint32_t p = longest_of(t);
    bool ring = p == t->nodes && p >= 4 && p % 2 == 0;
    for (unsigned i = 0; i < t->dims; i++)
        ring = ring && (t->wrap[i] || t->size[i] == 1);
    return ring;
}

#define FOURS "r x c tori, both multiples of 4"

static bool are_fours(const struct torus *t)
{
    return t->dims == 2 && are_multiples(t, 4);
}

/* Lemma 4 holds for AT2 as printed only if the larger size is a multiple of 8 (all_port_rings.c). */
static bool covers_at2_printed(const struct torus *t)
{
    return are_fours(t) && longest_of(t) % 8 == 0;
}

#define POWER_SQUARE "2^d x 2^d tori, d at least 2"

static bool is_power_square(const struct torus *t)
{
    return are_fours(t) && t->size[0] == t->size[1] && is_power_of_two(t->size[0]);
}

/* On 4x4, a node with one port takes 15 block times to receive its blocks. Formulas that give less
 * there hold from 8x8 on. */
static bool is_larger_power_square(const struct torus *t)
{
    return is_power_square(t) && t->size[0] >= 8;
}

static bool covers_suh_shin(const struct torus *t)
{
    return t->dims >= 2 && are_multiples(t, 4);
}

#define MULTIPLES "all sizes multiples of 2k"

static bool covers_mt(const struct torus *t)
{
    return are_multiples(t, 2 * t->dims);
}

static bool covers_pt(const struct torus *t)
{
    return is_power_of_two(t->dims) && covers_mt(t);
}

static bool is_square(const struct torus *t)
{
    return t->dims == 2 && t->wrap[0] && t->wrap[1] && t->size[0] == t->size[1] && t->size[0] >= 2;
}

static bool is_odd_square(const struct torus *t)
{
    return is_square(t) && t->size[0] % 2 != 0;
}

/* ---- All ports: Liu, Gu, Bi, Tu, Dong, and those with which they compare AR and AT2 ------------ */

static struct cost_counts count_ar(const struct torus *t)
{
    uint64_t p = t->nodes;
    return (struct cost_counts){.startups = (double)p / 2,
                                .transmission = (double)((p * p + 7) / 8)};
}

/* Blocks are rearranged before each of the three phases; on a ring they are not. */
static struct cost_counts count_at2(const struct torus *t)
{
    double c = longest_of(t), nodes = t->nodes;
    return (struct cost_counts){.startups = c / 2 + 2,
                                .transmission = nodes * c / 8,
                                .rearranged = longest_of(t) == t->nodes ? 0 : 3 * nodes};
}

static struct cost_counts count_tseng(const struct torus *t)
{
    double side = t->size[0], nodes = t->nodes;
    return (struct cost_counts){.startups = side / 2 + 2,
                                .transmission = nodes * side / 4 + nodes,
                                .rearranged = (side / 2 + 1) * nodes};
}

static struct cost_counts count_suh_yalamanchili(const struct torus *t)
{
    double side = t->size[0], d = power_of(t->size[0]), nodes = t->nodes;
    double blocks = 9 * nodes * side / 16 + (d * d - 5 * d + 3) * nodes / 2;
    return (struct cost_counts){
        .startups = 3 * d - 3, .transmission = blocks, .rearranged = blocks};
}

/* Table II is for two dimensions; the formula for more counts no rearrangement. */
static struct cost_counts count_suh_shin(const struct torus *t)
{
    double k = t->dims, longest = longest_of(t), nodes = t->nodes;
    return (struct cost_counts){.startups = k * (longest / 4 + 1),
                                .transmission = (k * longest / 8 + k / 2) * nodes,
                                .rearranged = t->dims == 2 ? 3 * nodes : 0};
}

/* The direct exchange of references [3, 4]. No two messages share a channel, so the number of steps
 * is that of the blocks on a channel, the all-port bound. The paper names no port model; on 4x4 the
 * formula cannot hold with one port, because a node receives 15 blocks in 8 steps. */
static struct cost_counts count_tseng_gupta(const struct torus *t)
{
    double steps = (double)t->nodes * t->size[0] / 8;
    return (struct cost_counts){.startups = steps, .transmission = steps};
}

/* Section 4.A has no formula. Two swaps of N/2 blocks, then AR1 twice, on logical rings of c/2 nodes
 * with messages of 2r blocks; rings of two nodes need a single swap. */
static struct cost_counts count_squares(const struct torus *t)
{
    uint32_t ring = longest_of(t) / 2;
    struct cost_counts c = formula_mt_counts(1, ring, t->nodes);

    c.startups = 2 + 2 * (ring == 2 ? 1 : c.startups);
    c.transmission = t->nodes + 2 * c.transmission;
    return c;
}

/* ---- One port: Liu, Gu, Ren, Xiong ------------------------------------------------------------ */

/* The transmission of PTk and MTk in closed form, which is the same for both. */
static double blocks_of(uint64_t k, uint64_t longest, double nodes)
{
    uint64_t rings = k * k * (longest * longest / (8 * k * k));
    return ((double)rings + (double)(k * k / 4 * longest) + (double)(k * longest) / 2) * nodes /
           (double)longest;
}

/* Startups of k rounds of AR1, without the last swap of each. */
static double rounds_of(uint64_t k, uint64_t longest)
{
    return (double)(k * ((longest + 4 * k - 1) / (4 * k)));
}

struct cost_counts formula_pt_counts(unsigned k, uint32_t longest, double nodes)
{
    return (struct cost_counts){.startups = rounds_of(k, longest) + k * (power_of(k) + 1),
                                .transmission = blocks_of(k, longest, nodes)};
}

struct cost_counts formula_mt_counts(unsigned k, uint32_t longest, double nodes)
{
    return (struct cost_counts){.startups = rounds_of(k, longest) + k * k,
                                .transmission = blocks_of(k, longest, nodes)};
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

static struct cost_counts count_pt(const struct torus *t)
{
    return formula_pt_counts(t->dims, longest_of(t), t->nodes);
}

static struct cost_counts count_pt_recurrence(const struct torus *t)
{
    return formula_pt_recurrence_counts(t->dims, longest_of(t), t->nodes);
}

static struct cost_counts count_mt(const struct torus *t)
{
    return formula_mt_counts(t->dims, longest_of(t), t->nodes);
}

static struct cost_counts count_ar1(const struct torus *t)
{
    return formula_mt_counts(1, t->nodes, t->nodes);
}

/* ---- Allgather: Yang, Wang, and those with which they compare their pattern -------------------
 *
 * In their model a node that has started continues without further startups, and every hop costs
 * switching time. The formulas are for n x n tori. The paper prints them for even n, too, although
 * n^2-1 blocks cannot be divided evenly among four links, or two. Its pattern works for odd n only
 * (yangwang.c), and so its formula here covers odd n. */

/* Blocks that a node receives by each of its links if it uses `links` of them evenly. */
static double share(const struct torus *t, unsigned links)
{
    return (t->nodes - 1.0) / links;
}

static struct cost_counts count_yangwang(const struct torus *t)
{
    return (struct cost_counts){
        .startups = 1, .transmission = share(t, 4), .hops = 2, .overlapped = true};
}

static struct cost_counts count_saadschultz(const struct torus *t)
{
    return (struct cost_counts){
        .startups = 2, .transmission = share(t, 2), .hops = 2 * (t->size[0] / 2)};
}

static struct cost_counts count_calvin(const struct torus *t)
{
    return (struct cost_counts){.startups = 2 * log(t->nodes) / log(5),
                                .transmission = share(t, 2),
                                .hops = 1.5 * (t->size[0] - 1.0)};
}

/* ---- Products of graphs: Dimakopoulos, Dimopoulos; Diaz de Cerio, Valero-Garcia, Gonzalez ------
 *
 * With the exchanges of one dimension that are implemented here, and the CC-cube without pipelining.
 * The formulas cover every torus that the algorithms take, also sizes that are too large to
 * enumerate. */

static struct cost_counts count_product(const struct torus *t, enum product_algorithm a)
{
    struct product p = product_of_torus(t);
    return (struct cost_counts){.startups = (double)product_steps(&p, a),
                                .transmission = (double)product_blocks(&p, a),
                                .hops = (double)product_steps(&p, a)};
}

static struct cost_counts count_a1(const struct torus *t)
{
    return count_product(t, PRODUCT_A1);
}

static struct cost_counts count_a2(const struct torus *t)
{
    return count_product(t, PRODUCT_A2);
}

static struct cost_counts count_a3(const struct torus *t)
{
    return (struct cost_counts){.startups = a3_startups(t),
                                .transmission = (double)a3_transmission(t),
                                .hops = a3_startups(t)};
}

static struct cost_counts count_cccube(const struct torus *t)
{
    return cccube_counts(&family_cccube, t, 1);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define ALL_PORT "Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, "
#define SCALABLE                                                                                   \
    "Efficient and Scalable Algorithms for All-to-All Personalized Communication on "              \
    "Multidimensional Tori, "
#define ONE_PORT "Liu, Gu, Ren, Xiong: " SCALABLE
#define BROADCAST "Yang, Wang, All-to-All Communication, "
#define PRODUCTS                                                                                   \
    "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "                \
    "Interconnection Networks, "
#define CLOSED_FORM "(k^2*floor(n^2/8k^2) + (floor(k^2/4) + k/2)*n) * N/n"
#define PT_DIMS "tori of 1, 2, 4 or 8 dimensions, " MULTIPLES

static const struct formula rows[] = {
    {"ar", OPERATION_EXCHANGE, PORT_MODEL_ALL, EVEN_RING, "p/2", "ceil(p^2/8)", "",
     ALL_PORT "lemma 2", is_even_ring, count_ar},
    {"at2", OPERATION_EXCHANGE, PORT_MODEL_ALL, FOURS, "c/2 + 2", "r*c^2/8", "3*r*c",
     ALL_PORT "lemma 4 and section 4.D", are_fours, count_at2},
    {"at2-printed", OPERATION_EXCHANGE, PORT_MODEL_ALL, FOURS " and the larger one of 8", "c/2 + 2",
     "r*c^2/8", "3*r*c", ALL_PORT "lemma 4 and section 4.D", covers_at2_printed, count_at2},
    {"tseng", OPERATION_EXCHANGE, PORT_MODEL_ONE, POWER_SQUARE, "2^(d-1) + 2", "2^(3d-2) + 2^(2d)",
     "(2^(d-1) + 1) * 2^(2d)",
     "Tseng, Lin, Gupta, Panda, Bandwidth-Optimal Complete Exchange on Wormhole-Routed 2D/3D Torus "
     "Networks, as in " ALL_PORT "Table II",
     is_power_square, count_tseng},
    {"suh-yalamanchili", OPERATION_EXCHANGE, PORT_MODEL_ONE, "2^d x 2^d tori, d at least 3",
     "3d - 3", "9*2^(3d-4) + (d^2 - 5d + 3) * 2^(2d-1)", "as many as are transmitted",
     "Suh, Yalamanchili, All-to-All Communication with Minimum Start-Up Costs in 2D/3D Tori and "
     "Meshes, as in " ALL_PORT "Table II",
     is_larger_power_square, count_suh_yalamanchili},
    {"suh-shin", OPERATION_EXCHANGE, PORT_MODEL_ONE,
     "tori of two or more dimensions, all multiples of 4", "k * (n/4 + 1), n the largest size",
     "(k*n/8 + k/2) * N", "3*N in two dimensions",
     "Suh, Shin, All-to-All Personalized Communication in Multidimensional Torus and Mesh "
     "Networks, "
     "as in " ALL_PORT "Table II, and for k dimensions in Liu et al., " SCALABLE "Table 1",
     covers_suh_shin, count_suh_shin},
    {"tseng-gupta", OPERATION_EXCHANGE, PORT_MODEL_ALL, POWER_SQUARE, "2^(3d-3)", "2^(3d-3)", "",
     "Tseng, Gupta, All-to-All Personalized Communication in a Wormhole-Routed Torus, and Lam, "
     "Huang, Sadayappan, Optimal Algorithms for All-to-All Personalized Communication on Rings and "
     "Two Dimensional Tori, as in " ALL_PORT "section 1",
     is_power_square, count_tseng_gupta},
    {"squares", OPERATION_EXCHANGE, PORT_MODEL_ONE, FOURS,
     "2*ceil(c/8) + 4, c the larger size (c = 4: 4)", "4*r*floor(c^2/32) + 2*r*c", "",
     ALL_PORT "section 4.A, with the cost of AR1 in " ONE_PORT "section 3", are_fours,
     count_squares},
    {"yangwang", OPERATION_ALLGATHER, PORT_MODEL_ALL, "n x n tori, n odd", "1",
     "(n^2-1)/4, overlapped with all switching but twice", "",
     BROADCAST "theorem 4 and corollary 3", is_odd_square, count_yangwang},
    {"saadschultz", OPERATION_ALLGATHER, PORT_MODEL_ALL, "n x n tori, n at least 2", "2",
     "(n^2-1)/2, and 2*floor(n/2) hops", "", "Saad, Schultz, as in " BROADCAST "Comparisons",
     is_square, count_saadschultz},
    {"calvin", OPERATION_ALLGATHER, PORT_MODEL_ALL, "n x n tori, n at least 2", "2*log5(n^2)",
     "(n^2-1)/2, and 3(n-1)/2 hops", "",
     "Calvin, Perennes, Trystram, as in " BROADCAST "Comparisons", is_square, count_calvin},
    {"ar1", OPERATION_EXCHANGE, PORT_MODEL_ONE, EVEN_RING, "ceil(p/4) + 1", "floor(p^2/8) + p/2",
     "", ONE_PORT "section 3", is_even_ring, count_ar1},
    {"at2-1port", OPERATION_EXCHANGE, PORT_MODEL_ONE, FOURS, "2*ceil(c/8) + 4, c the larger size",
     "4*r*floor(c^2/32) + 2*r*c", "", ONE_PORT "section 4 and Table 1", are_fours, count_pt},
    {"pt", OPERATION_EXCHANGE, PORT_MODEL_ONE, PT_DIMS,
     "k*(ceil(n/4k) + log2 k + 1), n the largest size", CLOSED_FORM, "",
     ONE_PORT "section 5.1 and Table 1", covers_pt, count_pt},
    {"pt-recurrence", OPERATION_EXCHANGE, PORT_MODEL_ONE, PT_DIMS,
     "k*(ceil(n/4k) + log2 k + 1), n the largest size",
     "(k^2*floor(n^2/8k^2) + k/2*(1 + log2 k)*n) * N/n", "",
     ONE_PORT "section 5.1, the recurrence instead of its closed form", covers_pt,
     count_pt_recurrence},
    {"mt", OPERATION_EXCHANGE, PORT_MODEL_ONE, "tori of k dimensions, " MULTIPLES,
     "k*ceil(n/4k) + k^2, n the largest size", CLOSED_FORM, "", ONE_PORT "section 5.3 and Table 1",
     covers_mt, count_mt},
    {"a1", OPERATION_EXCHANGE, PORT_MODEL_ONE,
     "any torus or mesh for which it needs at most 8388608 steps",
     "first dimension: a2's; each further one: n_i * (status + startups so far)",
     "first dimension: a2's; each further one: n_i * (nodes so far * status + blocks so far)", "",
     PRODUCTS "section 4, Fig. 3", NULL, count_a1},
    {"a2", OPERATION_EXCHANGE, PORT_MODEL_ONE, "any torus or mesh",
     "sum of n_i - 1 (mesh: 2n_i - 2, even: 2n_i - 1, of 2: 1)",
     "sum of N/n_i * floor(n_i^2/4) (mesh: floor((n_i^2-1)/2))", "", PRODUCTS "corollary 2", NULL,
     count_a2},
    {"a3", OPERATION_EXCHANGE, PORT_MODEL_ALL, "equal halves, down to dimensions or small products",
     "2^j equal dimensions: N/n * floor(n/2) (mesh: N/n * (n-1), complete: N/n)",
     "2^j equal dimensions: N/n * ceil(n^2/8), odd n: N/n * (n^2-1)/8 (mesh: N/n * floor(n^2/4), "
     "complete: N/n)",
     "", PRODUCTS "corollary 3", NULL, count_a3},
    {"cccube", OPERATION_EXCHANGE, PORT_MODEL_ALL, "tori and meshes of 2^d nodes",
     "sum of 3n_i/4 - 1 (ring of 2: 1; mesh: n_i - 1)", "N/2 * startups", "",
     "Diaz de Cerio, Valero-Garcia and Gonzalez, Complete Exchange Algorithms for Meshes and Tori "
     "Using a Systematic Approach, section 4",
     NULL, count_cccube},
};

size_t formula_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct formula *formula_at(size_t index)
{
    return index < formula_count() ? &rows[index] : NULL;
}

const struct formula *formula_find(const char *algorithm)
{
    for (size_t i = 0; i < formula_count(); i++)
        if (strcmp(rows[i].algorithm, algorithm) == 0)
            return &rows[i];
    return NULL;
}

static bool covers(const struct formula *f, const struct torus *t)
{
    return f->covers != NULL ? f->covers(t)
                             : algorithm_accepts(algorithm_find(f->algorithm), t, NULL) == 0;
}

int formula_counts(const struct formula *f, const struct torus *t, struct cost_counts *c,
                   struct error *e)
{
    char text[TORUS_TEXT_SIZE];

    if (!covers(f, t))
        return error_set(e, ERROR_REFUSED, "the formula of %s covers %s, not %s", f->algorithm,
                         f->covers_text, torus_format(t, text));
    *c = f->counts(t);
    return 0;
}
