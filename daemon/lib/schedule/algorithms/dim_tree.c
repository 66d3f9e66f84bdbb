/* Dimension after dimension, with a tree on every line of nodes: blocks that move along a line are
 * gathered towards its root, and scattered from there. Each block goes only as far as it has to.
 *
 * A line of n takes 2(n-1) messages, one each way over every link (a ring leaves out one link),
 * where `dim` and `pair` take n^2/2 or more. A link carries at most N*n/4 blocks, where `tree` with
 * its single tree carries up to N^2/4. So this algorithm is between them, and the best for blocks
 * of some ten to some hundred bytes.
 *
 * On a mesh the root of a line is in the middle. On a ring any node can be the root: the sum of the
 * line's other coordinates chooses it, so that the busiest links and nodes are in a different place
 * on each line. */
#include "daemon/lib/schedule/algorithms/climb.h"
#include "daemon/lib/schedule/algorithms/rows.h"

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
    .summary = "a dimension at a time, each line by a tree: for blocks of some ten bytes",
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
