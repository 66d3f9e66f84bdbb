/* Formulas for A1, A2 and A3 of Dimakopoulos, Dimopoulos: A Theory for Total Exchange in
 * Multidimensional Interconnection Networks, with the exchanges of one dimension that are
 * implemented here; and for the CC-cube without pipelining of Diaz de Cerio, Valero-Garcia,
 * Gonzalez: Complete Exchange Algorithms for Meshes and Tori Using a Systematic Approach. They
 * cover every torus that the algorithms take, also sizes that are too large to enumerate. */
#include "client/theory/formula_rows.h"
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/product.h"

static struct cost_counts product_counts(const struct torus *t, enum product_algorithm a)
{
    struct product p = product_of_torus(t);
    return (struct cost_counts){.startups = (double)product_steps(&p, a),
                                .transmission = (double)product_blocks(&p, a),
                                .hops = (double)product_steps(&p, a)};
}

static bool a1_covers(const struct torus *t)
{
    return algorithm_a1.takes(t);
}

static struct cost_counts a1_counts(const struct torus *t)
{
    return product_counts(t, PRODUCT_A1);
}

const struct formula formula_a1 = {
    .algorithm = "a1",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "any torus or mesh for which it needs at most 8388608 steps",
    .startups = "first dimension: a2's; each further one: n_i * (status + startups so far)",
    .transmission =
        "first dimension: a2's; each further one: n_i * (nodes so far * status + blocks so far)",
    .rearranged = "",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 4, Fig. 3",
    .covers = a1_covers,
    .counts = a1_counts,
};

static bool a2_covers(const struct torus *t)
{
    return algorithm_a2.takes(t);
}

static struct cost_counts a2_counts(const struct torus *t)
{
    return product_counts(t, PRODUCT_A2);
}

const struct formula formula_a2 = {
    .algorithm = "a2",
    .port_model = PORT_MODEL_ONE,
    .covers_text = "any torus or mesh",
    .startups = "sum of n_i - 1 (mesh: 2n_i - 2, even: 2n_i - 1, of 2: 1)",
    .transmission = "sum of N/n_i * floor(n_i^2/4) (mesh: floor((n_i^2-1)/2))",
    .rearranged = "",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, corollary 2",
    .covers = a2_covers,
    .counts = a2_counts,
};

static bool a3_covers(const struct torus *t)
{
    return algorithm_a3.takes(t);
}

static struct cost_counts a3_counts(const struct torus *t)
{
    return (struct cost_counts){.startups = a3_startups(t),
                                .transmission = (double)a3_transmission(t),
                                .hops = a3_startups(t)};
}

const struct formula formula_a3 = {
    .algorithm = "a3",
    .port_model = PORT_MODEL_ALL,
    .covers_text = "1, 2, 4 or 8 equal dimensions",
    .startups = "N/n * floor(n/2) (mesh: N/n * (n-1), complete: N/n)",
    .transmission =
        "N/n * ceil(n^2/8), odd n: N/n * (n^2-1)/8 (mesh: N/n * floor(n^2/4), complete: N/n)",
    .rearranged = "",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, corollary 3",
    .covers = a3_covers,
    .counts = a3_counts,
};

static bool cccube_covers(const struct torus *t)
{
    return algorithm_cccube.takes(t);
}

static struct cost_counts cccube_alone(const struct torus *t)
{
    return cccube_counts(&family_cccube, t, 1);
}

const struct formula formula_cccube = {
    .algorithm = "cccube",
    .port_model = PORT_MODEL_ALL,
    .covers_text = "tori and meshes of 2^d nodes",
    .startups = "sum of 3n_i/4 - 1 (ring of 2: 1; mesh: n_i - 1)",
    .transmission = "N/2 * startups",
    .rearranged = "",
    .source = "Diaz de Cerio, Valero-Garcia and Gonzalez, Complete Exchange Algorithms for Meshes "
              "and Tori Using a Systematic Approach, section 4",
    .covers = cccube_covers,
    .counts = cccube_alone,
};
