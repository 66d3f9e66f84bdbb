#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/product.h"
#include "daemon/lib/schedule/tally.h"

/* The routes of a product's exchange (product.h) as legs of single hops, for a1 and a2. */

/* Whether every factor has an exchange, and the schedule not too many steps. */
static bool product_legs_fit(const struct torus *t, enum product_algorithm a)
{
    struct product p = product_of_torus(t);

    return product_has_exchange(&p) && product_steps(&p, a) <= MESSAGE_MAX_STEP + 1;
}

/* Writes the legs of a walk in a graph. */
static void graph_legs(const struct graph *g, const struct product_walk *w, struct leg *legs)
{
    uint32_t node = w->from;

    for (uint32_t hop = 0; hop < w->walk.hops; hop++) {
        const struct graph_hop *path = w->walk.path;
        unsigned direction = path != NULL ? path[hop].direction : graph_towards(g, node, w->to);
        legs[hop] = (struct leg){.step = w->walk.step + (path != NULL ? path[hop].step : hop),
                                 .hops = 1,
                                 .dim = (uint8_t)w->dim,
                                 .direction = (int8_t)(direction + 1)};
        node = graph_neighbour(g, node, direction);
    }
}

/* Writes the route of a block; the torus must fit. Returns the number of legs, at most
 * product_legs_most(). */
static uint32_t product_legs(const struct torus *t, enum product_algorithm a, uint32_t source,
                             uint32_t destination, struct leg *legs)
{
    struct product p = product_of_torus(t);
    struct product_walk walks[PRODUCT_MAX_DIMS];
    unsigned count = product_route(&p, a, source, destination, walks);
    uint32_t hops = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct walk *walk = &walks[i].walk;
        if (p.factor[walks[i].dim].kind == FACTOR_GRAPH) {
            graph_legs(t->graph[walks[i].dim], &walks[i], &legs[hops]);
            hops += walk->hops;
            continue;
        }
        for (uint32_t hop = 0; hop < walk->hops; hop++)
            legs[hops++] = (struct leg){.step = walk->step + hop,
                                        .hops = 1,
                                        .dim = (uint8_t)walks[i].dim,
                                        .direction = (int8_t)walk->stride};
    }
    return hops;
}

static uint32_t product_legs_most(const struct torus *t)
{
    struct product p = product_of_torus(t);
    return product_diameter(&p);
}

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
 * In lines 1 to 4 only one node of each copy of B sends at a time. A2 replaces them by an
 * exchange in B. On 8x8, A1 takes 184 steps and 1152 blocks, A2 takes 14 and 256. */

static bool a1_takes(const struct torus *t)
{
    return product_legs_fit(t, PRODUCT_A1);
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
    .takes = a1_takes,
    .max_legs = product_legs_most,
    .period = a1_period,
    .route = a1_route,
};

/* A2: complete exchange with single hops on a one-port network, one dimension after another.
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
 * Stars, trees and other graphs have the exchange of graph/graph_exchange.h. It attains the average
 * status on Cayley graphs whose group it finds; section 4.1 of the paper says so of all Cayley
 * graphs. */

static bool a2_takes(const struct torus *t)
{
    return product_legs_fit(t, PRODUCT_A2);
}

static uint32_t a2_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    (void)segment;
    return product_legs(t, PRODUCT_A2, source, destination, legs);
}

const struct algorithm algorithm_a2 = {
    .name = "a2",
    .summary = "one dimension after another by single hops; in each all blocks +, then all -",
    .accepts_text = "any product of rings, lines and graphs; the distances in a graph add up to at "
                    "most 262144",
    .any_graph = true,
    .startups = "sum of n_i - 1 (line: 2n_i - 2, even: 2n_i - 1, of 2: 1)",
    .transmission = "sum of N/n_i * floor(n_i^2/4) (line: floor((n_i^2-1)/2), complete: n_i - 1)",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 4",
    .port_model = PORT_MODEL_ONE,
    .single_hops = true,
    .by_lines = true,
    .segments = 1,
    .takes = a2_takes,
    .max_legs = product_legs_most,
    .period = torus_full_period,
    .route = a2_route,
};
