/* A2: complete exchange with single hops on a one-port network, one dimension after the other.
 * Dimakopoulos, Dimopoulos: A Theory for Total Exchange in Multidimensional Interconnection
 * Networks, section 4, Fig. 4.
 *
 * Let the network be the product of A, with n_1 nodes, and B, with n_2 nodes. First every copy of B
 * runs n_1 exchanges, which bring each block to the copy of A that its destination is in. Then
 * every copy of A runs n_2 exchanges. The same rule applied to A gives any number of dimensions.
 * factor.c has the exchange of one dimension, product.c the order of the dimensions; this file
 * turns hops into legs.
 *
 * The paper sends one block in a time unit, and runs the n_1 and n_2 exchanges as rounds, one after
 * the other. Here all rounds of a dimension run together, their blocks in the same combined
 * messages: the startups are the steps of a single round, the transmission is that of the paper.
 *
 * On tori the transmission is the average status, and no schedule with one port and single hops
 * takes less. An array cannot reach its average status: for that, every node would have to send all
 * the time, but nodes in the middle have more to send. The middle sends floor((n^2-1)/2) blocks,
 * and the exchange takes as long. No schedule is known that attains the bound on meshes of more
 * dimensions.
 *
 * Stars, trees and other graphs have the exchange of graph/graph_exchange.h. */
#include "daemon/lib/schedule/algorithms/product_legs.h"
#include "daemon/lib/schedule/algorithms/rows.h"

static int a2_accepts(const struct torus *t, struct error *e)
{
    return product_legs_fit(t, PRODUCT_A2) ? 0 : algorithm_refuse(&algorithm_a2, t, e);
}

static uint32_t a2_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return product_legs(t, PRODUCT_A2, source, destination, legs);
}

const struct algorithm algorithm_a2 = {
    .name = "a2",
    .summary = "one dimension after the other by single hops; in each all blocks +, then all -",
    .accepts_text = "any product of rings, lines and graphs; the distances in a graph add up to at "
                    "most 262144",
    .any_graph = true,
    .startups = "sum of n_i - 1 (line: 2n_i - 2, even: 2n_i - 1, of 2: 1)",
    .transmission = "sum of N/n_i * floor(n_i^2/4) (line: floor((n_i^2-1)/2), complete: n_i - 1)",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 4",
    .port_model = PORT_MODEL_ONE,
    .single_hops = true,
    .segments = 1,
    .accepts = a2_accepts,
    .max_legs = product_legs_most,
    .period = torus_full_period,
    .route = a2_route,
};
