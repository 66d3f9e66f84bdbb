/* A2: complete exchange with one send and one receive at a time and single hops, dimension after
 * dimension. Dimakopoulos, Dimopoulos: A Theory for Total Exchange in Multidimensional
 * Interconnection Networks, section 4. The exchanges of the single dimensions are in factor.c, and
 * how they follow each other in product.c; here their hops become legs.
 *
 * The paper counts a time unit for every block, n_1 rounds in one dimension and n_2 in the other;
 * its rounds are the blocks of a combined message here, so that only the ring's own steps are
 * startups. On tori the blocks are those of the paper, the average status: no schedule with one
 * port and single hops has less. On an array the average status is out of reach, since it takes
 * every node to be sending all the time, and the middle has more to send: floor((n^2-1)/2) blocks,
 * which is what the exchange takes. On meshes of more dimensions no schedule is known that takes
 * as few as the bound. */
#include "daemon/schedule/algorithms/product_legs.h"
#include "daemon/schedule/algorithms/rows.h"

static int a2_accepts(const struct torus *t, struct error *e)
{
    (void)t;
    (void)e;
    return 0;
}

static void a2_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->wrap[i] ? 1 : t->size[i];
}

static uint32_t a2_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return product_legs(t, PRODUCT_A2, source, destination, legs);
}

const struct algorithm algorithm_a2 = {
    .name = "a2",
    .summary = "one dimension after the other by single hops; in each everything +, then -",
    .accepts_text = "any torus or mesh",
    .startups = "sum of n_i - 1 (mesh: 2n_i - 2, even: 2n_i - 1, of 2: 1)",
    .transmission = "sum of N/n_i * floor(n_i^2/4) (mesh: floor((n_i^2-1)/2))",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 4",
    .port_model = PORT_MODEL_ONE,
    .single_hops = true,
    .segments = 1,
    .accepts = a2_accepts,
    .max_legs = product_legs_most,
    .period = a2_period,
    .route = a2_route,
};
