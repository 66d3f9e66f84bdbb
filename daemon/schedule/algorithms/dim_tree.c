/* Dimension after dimension, in each by a tree on every line of nodes: what goes along the line is
 * gathered towards a node in its middle and scattered from there, a block only as far as its way
 * has to. One message each way through every link of the line but one of a ring's: 2(n-1) a line,
 * where neighbours that exchange step by step (dim, pair) need n^2/2 or more, and no link has more
 * than N*n/4 blocks, where those of the one tree of all nodes (tree) have up to N^2/4. Between the
 * two, for blocks of some ten to some hundred bytes.
 *
 * The middle of a mesh's line is its middle; on a ring any node can be it, and is by the sum of the
 * line's other coordinates: the links and nodes with most to do are in a different place on each.
 */
#include "daemon/schedule/algorithms/climb.h"
#include "daemon/schedule/algorithms/rows.h"

static int dim_tree_accepts(const struct torus *t, struct error *e)
{
    (void)t;
    (void)e;
    return 0;
}

static uint32_t dim_tree_steps(const struct torus *t)
{
    uint32_t steps = 0;

    for (unsigned i = 0; i < t->dims; i++)
        steps += t->size[i] / 2 * 2;
    return steps;
}

static uint32_t dim_tree_route(const struct torus *t, uint32_t source, uint32_t destination,
                               uint32_t segment, struct leg *legs)
{
    uint32_t here[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct climb c = {.legs = legs};
    uint64_t sum = 0;

    (void)segment;
    torus_coordinates(t, source, here);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        sum += here[i];
    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t n = t->size[i];
        uint32_t root = t->wrap[i] ? (uint32_t)((sum - here[i]) % n) : n / 2;
        int64_t up = climb_offset(t, i, root, here[i]);
        int64_t down = climb_offset(t, i, root, to[i]);
        int64_t shared = climb_common(up, down);
        c.deepest = n / 2;
        c.depth = climb_length(up);
        climb_up(&c, i, up, shared);
        climb_down(&c, i, shared, down);
        c.begin += n / 2 * 2;
        sum = sum - here[i] + to[i];
    }
    return c.count;
}

const struct algorithm algorithm_dim_tree = {
    .name = "dim-tree",
    .summary = "a dimension at a time, each line by a tree: for some ten bytes",
    .accepts_text = "any torus or mesh",
    .startups = "sum of 2*floor(n_i/2)",
    .transmission = "sum over i and a = 1..floor(n_i/2) of 2*a*(n_i-a)*N/n_i",
    .source = "this project; gather and scatter combined, dimension by dimension",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = dim_tree_accepts,
    .max_legs = dim_tree_steps,
    .period = torus_no_period,
    .ordered_steps = dim_tree_steps,
    .route = dim_tree_route,
};
