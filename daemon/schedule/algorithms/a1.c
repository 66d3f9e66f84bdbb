/* A1: complete exchange with one send and one receive at a time and single hops. Dimakopoulos,
 * Dimopoulos: A Theory for Total Exchange in Multidimensional Interconnection Networks, section 4,
 * Fig. 3 with lines 1 to 4 as improved below it: all copies of B side by side.
 *
 * A is all dimensions but the last, B the last one (product.h). Lines 1 to 4: every node of B in turn
 * sends to every other one the N/n blocks that it has for that one's copy of A, as one message by
 * single hops on a shortest path; a node's messages, and then the next node's, follow each other.
 * Lines 5 to 7: n exchanges within the copies of A, the j-th one for the blocks that come from the
 * j-th copy. These are by A1 again, until A is a single dimension, with the exchange of factor.c.
 *
 * The paper begins with A1, and improves it: in lines 1 to 4 only one node of each copy of B
 * sends. A2 makes these an exchange in B. On 8x8 A1 takes 1152 blocks in 184 steps, A2 256 in
 * 14. */
#include "daemon/schedule/algorithms/product_legs.h"
#include "daemon/schedule/algorithms/rows.h"
#include "daemon/schedule/message_key.h"

static int a1_accepts(const struct torus *t, struct error *e)
{
    struct product p = product_of_torus(t);
    return product_steps(&p, PRODUCT_A1) <= MESSAGE_MAX_STEP + 1
               ? 0
               : algorithm_refuse(&algorithm_a1, t, e);
}

/* In B the nodes send one after the other, in the order of their numbers. */
static void a1_period(const struct torus *t, uint32_t *period)
{
    bool first = true;

    for (unsigned i = 0; i < t->dims; i++) {
        period[i] = first && t->wrap[i] ? 1 : t->size[i];
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
    .summary = "in the last dimension one node after the other, then exchanges in the others",
    .accepts_text = "a torus or mesh for which it needs at most 16777216 steps",
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
