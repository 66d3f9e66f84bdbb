/* A1: complete exchange with single hops on a one-port network. Dimakopoulos, Dimopoulos: A Theory
 * for Total Exchange in Multidimensional Interconnection Networks, section 4, Fig. 3, with lines 1
 * to 4 as improved below the figure.
 *
 * Let B be the last dimension, with n nodes, and A the product of all others; N is the number of
 * nodes. The network has n copies of A and N/n copies of B. A block first moves within its copy of
 * B to the copy of A that its destination is in. Then each copy of A exchanges the blocks that it
 * has got.
 * - Lines 1 to 4: all copies of B work at the same time, and in each of them the nodes send in
 *   turn. A node sends one message to each other node of its copy: the N/n blocks for that node's
 *   copy of A. A message takes single hops on a shortest path, and starts when the message before
 *   it has arrived.
 * - Lines 5 to 7: n exchanges within the copies of A. Exchange j moves the blocks that come from
 *   copy j. It is A1 again, until A is a single dimension: that uses the exchange of factor.c.
 *
 * In lines 1 to 4 only one node of each copy of B sends at a time. A2 (a2.c) replaces them by an
 * exchange in B. On 8x8, A1 takes 184 steps and 1152 blocks, A2 takes 14 and 256. */
#include "daemon/lib/schedule/algorithms/product_legs.h"
#include "daemon/lib/schedule/algorithms/rows.h"

static int a1_accepts(const struct torus *t, struct error *e)
{
    return product_legs_fit(t, PRODUCT_A1) ? 0 : algorithm_refuse(&algorithm_a1, t, e);
}

/* The first dimension runs the exchange of factor.c, which is the same at every node of a ring, and of
 * a graph that moves. In all others the nodes send in turn, so every node is different. */
static void a1_period(const struct torus *t, uint32_t *period)
{
    bool first = true;

    for (unsigned i = 0; i < t->dims; i++) {
        bool same = t->wrap[i] || (t->graph[i] != NULL && t->graph[i]->moves);
        period[i] = first && same ? 1 : t->size[i];
        first &= t->size[i] == 1;
    }
}

static uint32_t a1_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return product_legs(t, PRODUCT_A1, source, destination, legs);
}

const struct algorithm algorithm_a1 = {
    .name = "a1",
    .summary = "in the last dimension nodes send in turn, then exchanges in the others",
    .accepts_text = "a product of rings, lines and graphs for which it needs at most 8388608 "
                    "steps; the distances "
                    "in a graph add up to at most 262144",
    .any_graph = true,
    .startups = "first dimension: a2's; each further one: n_i * (status + startups so far)",
    .transmission =
        "first dimension: a2's; each further one: n_i * (nodes so far * status + blocks so far)",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 4",
    .port_model = PORT_MODEL_ONE,
    .single_hops = true,
    .segments = 1,
    .accepts = a1_accepts,
    .max_legs = product_legs_most,
    .period = a1_period,
    .route = a1_route,
};
