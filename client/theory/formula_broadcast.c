/* Formulas of Yang, Wang: All-to-All Communication, part "All-to-all broadcast", for their
 * broadcast pattern and the two algorithms with which they compare it. In their model a node that
 * has started continues without further startups, and every hop costs switching time.
 *
 * The formulas are for n x n tori. The paper prints them for even n, too, although n^2-1 blocks
 * cannot be divided evenly among four links, or two. Its pattern works for odd n only (yangwang.c),
 * and so its formula here covers odd n. */
#include <math.h>

#include "client/theory/formula_rows.h"

#define PAPER "Yang, Wang, All-to-All Communication, "

static bool square_covers(const struct torus *t)
{
    return t->dims == 2 && t->wrap[0] && t->wrap[1] && t->size[0] == t->size[1] && t->size[0] >= 2;
}

#define SQUARE "n x n tori, n at least 2"

/* Blocks that a node receives by each of its links if it uses `links` of them evenly. */
static double share(const struct torus *t, unsigned links)
{
    return (t->nodes - 1.0) / links;
}

static bool odd_square_covers(const struct torus *t)
{
    return square_covers(t) && t->size[0] % 2 != 0;
}

static struct cost_counts yangwang_counts(const struct torus *t)
{
    return (struct cost_counts){
        .startups = 1, .transmission = share(t, 4), .hops = 2, .overlapped = true};
}

const struct formula formula_yangwang = {
    .algorithm = "yangwang",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .covers_text = "n x n tori, n odd",
    .startups = "1",
    .transmission = "(n^2-1)/4, overlapped with all switching but twice",
    .rearranged = "",
    .source = PAPER "theorem 4 and corollary 3",
    .covers = odd_square_covers,
    .counts = yangwang_counts,
};

static struct cost_counts saadschultz_counts(const struct torus *t)
{
    return (struct cost_counts){
        .startups = 2, .transmission = share(t, 2), .hops = 2 * (t->size[0] / 2)};
}

const struct formula formula_saadschultz = {
    .algorithm = "saadschultz",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .covers_text = SQUARE,
    .startups = "2",
    .transmission = "(n^2-1)/2, and 2*floor(n/2) hops",
    .rearranged = "",
    .source = "Saad, Schultz, as in " PAPER "Comparisons",
    .covers = square_covers,
    .counts = saadschultz_counts,
};

static struct cost_counts calvin_counts(const struct torus *t)
{
    return (struct cost_counts){
        .startups = 2 * log(t->nodes) / log(5),
        .transmission = share(t, 2),
        .hops = 1.5 * (t->size[0] - 1.0),
    };
}

const struct formula formula_calvin = {
    .algorithm = "calvin",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .covers_text = SQUARE,
    .startups = "2*log5(n^2)",
    .transmission = "(n^2-1)/2, and 3(n-1)/2 hops",
    .rearranged = "",
    .source = "Calvin, Perennes, Trystram, as in " PAPER "Comparisons",
    .covers = square_covers,
    .counts = calvin_counts,
};
