/* A2: complete exchange with one send and one receive at a time and single hops, dimension after
 * dimension. Dimakopoulos, Dimopoulos: A Theory for Total Exchange in Multidimensional
 * Interconnection Networks, section 4. The exchanges of the single dimensions are in factor.c, and
 * how they follow each other in product.c; here their hops become legs.
 *
 * The paper counts a time unit for every block, n_1 rounds in one dimension and n_2 in the other;
 * its rounds are the blocks of a combined message here, so that only the ring's own steps are
 * startups. On tori the blocks are those of the paper, the average status: no schedule with one
 * port and single hops has less. On a mesh the lower bound cannot be met, since it takes every node
 * to be sending all the time: (n-1)^2 blocks on an array of n, plus 1 where n is odd, against
 * (n^2-1)/3. The nodes in the middle have to send about n^2/2. */
#include "daemon/schedule/product.h"
#include "daemon/schedule/registry.h"

static int a2_accepts(const struct torus *t, struct error *e)
{
    (void)t;
    (void)e;
    return 0;
}

static uint32_t a2_max_legs(const struct torus *t)
{
    struct product p = product_of_torus(t);
    return product_diameter(&p);
}

static void a2_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->wrap[i] ? 1 : t->size[i];
}

static uint32_t a2_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    struct product p = product_of_torus(t);
    struct product_walk walks[PRODUCT_MAX_DIMS];
    unsigned count = product_route(&p, source, destination, walks);
    uint32_t hops = 0;

    (void)segment;
    for (unsigned i = 0; i < count; i++)
        for (uint32_t hop = 0; hop < walks[i].walk.hops; hop++)
            legs[hops++] = (struct leg){.step = walks[i].walk.step + hop,
                                        .hops = 1,
                                        .dim = (uint8_t)walks[i].dim,
                                        .direction = (int8_t)walks[i].walk.stride};
    return hops;
}

const struct algorithm algorithm_a2 = {
    .name = "a2",
    .summary = "one dimension after the other by single hops; on a ring everything +, then -",
    .accepts_text = "any torus or mesh",
    .startups = "sum of n_i - 1 (odd mesh dimensions: n_i)",
    .transmission = "sum of N/n_i * floor(n_i^2/4) (mesh: (n_i-1)^2, odd: +1)",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 4",
    .port_model = PORT_MODEL_ONE,
    .single_hops = true,
    .segments = 1,
    .accepts = a2_accepts,
    .max_legs = a2_max_legs,
    .period = a2_period,
    .route = a2_route,
};
