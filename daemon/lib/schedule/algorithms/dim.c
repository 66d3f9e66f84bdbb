/* Dimension after dimension, in both directions at once. In each step, every block that still has
 * to move in this dimension moves one hop the shorter way, and all blocks that leave by a port are
 * one message: floor(n/2) steps on a ring of n, n - 1 on a line. On a hypercube (n = 2) this is the
 * classic exchange with one neighbour after the other.
 *
 * The parity of the offset in the other dimensions decides which way blocks go to the opposite node
 * of an even ring. Every node has one block for each such offset, so both ways carry the same, or
 * one of them one block more. The two halves of a block (rotation.h) go different ways as well.
 * Routes do not depend on where the source is: on a torus every node does the same. */
#include "daemon/lib/schedule/algorithms/rotation.h"
#include "daemon/lib/schedule/algorithms/rows.h"

static int dim_accepts(const struct torus *t, struct error *e)
{
    (void)t;
    (void)e;
    return 0;
}

static uint32_t dim_route(const struct torus *t, uint32_t source, uint32_t destination,
                          uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], offset[TORUS_MAX_DIMS];
    struct rotation order = rotation_of(t);
    uint32_t offsets = 0, begin = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++) {
        offset[i] = (to[i] + t->size[i] - from[i]) % t->size[i];
        offsets += offset[i];
    }
    for (unsigned turn = 0; turn < order.count; turn++) {
        unsigned dim = rotation_dim(&order, segment, turn);
        int direction =
            (offsets - offset[dim] + segment) % 2 == 0 ? 1 : -1; /* to the opposite node */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
        for (uint32_t hop = 0; hop < hops; hop++)
            legs[count++] = (struct leg){.step = begin + hop,
                                         .hops = 1,
                                         .dim = (uint8_t)dim,
                                         .direction = (int8_t)direction};
        begin += torus_longest_way(t, dim);
    }
    return count;
}

#define DIM(identifier, text, parts, split, blocks)                                                \
    const struct algorithm algorithm_##identifier = {                                              \
        .name = text,                                                                              \
        .summary = "a dimension at a time, in both directions, with combined messages" split,      \
        .accepts_text = "any torus or mesh",                                                       \
        .startups = "sum of floor(n_i/2) (mesh: n_i - 1)",                                         \
        .transmission = blocks,                                                                    \
        .source = "this project; dimension-order combining is classic on hypercubes",              \
        .port_model = PORT_MODEL_ALL,                                                              \
        .segments = parts,                                                                         \
        .accepts = dim_accepts,                                                                    \
        .max_legs = torus_diameter,                                                                \
        .period = torus_full_period,                                                               \
        .route = dim_route,                                                                        \
    };

DIM(dim, "dim", 1, "",
    "sum of N/n_i * floor(n_i^2/4)/2 (n_i even, N/n_i odd: + n_i/4; mesh: N*(n_i-1)/2)")
DIM(dim_s2, "dim-s2", 2, ", in halves",
    "several equal sizes: half of sum of N/n_i * floor(n_i^2/4)/2 (mesh: N*(n_i-1)/2)")
