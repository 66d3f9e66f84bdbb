/* Orders: every block is split into equal parts, and each part goes straight to its destination by
 * single hops, one in every step, in an order of the dimensions of its own. All orders occur
 * equally often. In a dimension of even size, half of the parts of each order take each way to the
 * exact opposite.
 *
 * On every torus this takes as many steps as the longest path has hops, and the steps together cost
 * exactly the lower bound: in each step the channels of the largest dimension carry at least as
 * much as any others. client/doc/exchange-in-steps.md has the statement and its proof.
 *
 * k dimensions need k! orders, and twice as many parts: 4, 12 and 48 for 2, 3 and 4 dimensions.
 * Twelve parts also hold each order of two dimensions six times. Dimensions of one node do not
 * count. stream (direct.c) has four parts in two orders, the first and its reverse, which are all
 * orders of two dimensions.
 *
 * Order and way alternate with the offset, which evens out parts of different sizes (in blocks of
 * fewer bytes than parts). Routes do not depend on where the source is: every node does the same. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rotation.h"

/* The dimensions of more than one node; more than any algorithm takes if one of them does not wrap. */
static unsigned dims_of(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && !t->wrap[i])
            return TORUS_MAX_DIMS + 1;
    return rotation_of(t).count;
}

static bool orders_takes(const struct torus *t)
{
    return dims_of(t) <= 3;
}

static bool orders_s48_takes(const struct torus *t)
{
    return dims_of(t) == 4;
}

/* Takes the dimension that the order with this number has next out of those that are left. */
static unsigned next_dim(struct rotation *left, uint32_t *order)
{
    uint32_t place = *order % left->count;
    unsigned dim = left->dim[place];

    *order /= left->count--;
    for (uint32_t i = place; i < left->count; i++)
        left->dim[i] = left->dim[i + 1];
    return dim;
}

static uint32_t orders_route(const struct torus *t, uint32_t source, uint32_t destination,
                             uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct rotation left = rotation_of(t);
    uint32_t orders = 1, offsets = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        offsets += (to[i] + t->size[i] - from[i]) % t->size[i];
    for (unsigned i = 2; i <= left.count; i++)
        orders *= i;
    uint32_t order = (segment + offsets) % orders;
    while (left.count > 0) {
        unsigned dim = next_dim(&left, &order);
        int direction = (segment / orders + offsets) % 2 == 0 ? 1 : -1; /* to the exact opposite */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
        for (; hops > 0; hops--, count++)
            legs[count] = (struct leg){
                .step = count, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)direction};
    }
    return count;
}

#define ORDERS(identifier, text, parts, in_words, tori)                                            \
    const struct algorithm algorithm_##identifier = {                                              \
        .name = text,                                                                              \
        .summary = in_words " parts a block by single hops, in all orders of the dimensions",      \
        .accepts_text = "tori of " tori " dimensions of more than one node",                       \
        .startups = "sum of floor(n_i/2)",                                                         \
        .transmission = "N/n * floor(n^2/4)/2, n the largest size: the lower bound",               \
        .source = "this project",                                                                  \
        .port_model = PORT_MODEL_ALL,                                                              \
        .segments = parts,                                                                         \
        .only_by_name = true,                                                                      \
        .takes = identifier##_takes,                                                               \
        .max_legs = torus_diameter,                                                                \
        .period = torus_full_period,                                                               \
        .route = orders_route,                                                                     \
    };

ORDERS(orders, "orders", 12, "twelve", "at most three")
ORDERS(orders_s48, "orders-s48", 48, "forty-eight", "four")
