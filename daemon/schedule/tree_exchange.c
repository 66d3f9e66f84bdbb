/* Complete exchange over a spanning tree: every block climbs from its source to the lowest node
 * that has source and destination below it, and descends from there. One message an edge and
 * direction, with everything that goes that way: 2(N-1) in all, the fewest there can be without
 * more links. For blocks so small that the number of messages is all that counts; the edges at the
 * root carry N^2/4 blocks.
 *
 * The tree is the one of tree.h: a node hangs where the shortest way from the root, dimension 0
 * first, comes through. The root is in the middle, so that no tree is less deep: node 0 where all
 * wraps, else the centre of each dimension that does not. A node sends up when all its children
 * have, and down when its parent has: the edge above a node of depth h is used in step D - h on the
 * way up and in step D + h - 1 on the way down, D being the depth of the tree. */
#include "daemon/schedule/registry.h"

/* Depth of the tree: the middle is no further from either end. */
static uint32_t depth(const struct torus *t)
{
    uint32_t hops = 0;

    for (unsigned i = 0; i < t->dims; i++)
        hops += t->size[i] / 2;
    return hops;
}

static int tree_accepts(const struct torus *t, struct error *e)
{
    (void)t;
    (void)e;
    return 0;
}

static uint32_t tree_max_legs(const struct torus *t)
{
    return 2 * depth(t);
}

static void tree_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->size[i];
}

/* Hops from the root along `dim` to a coordinate; those towards - are negative. */
static int64_t from_root(const struct torus *t, unsigned dim, uint32_t coordinate)
{
    uint32_t root = t->wrap[dim] ? 0 : t->size[dim] / 2;
    int direction = 1; /* at the exact opposite, as tree.h */
    uint32_t hops = torus_shortest(t, dim, root, coordinate, &direction);

    return direction * (int64_t)hops;
}

static uint32_t length(int64_t hops)
{
    return (uint32_t)(hops < 0 ? -hops : hops);
}

/* The hops from the root that two ways along a dimension have in common. */
static int64_t common(int64_t a, int64_t b)
{
    if ((a < 0) != (b < 0))
        return 0;
    return length(a) < length(b) ? a : b;
}

/* A way, hop by hop; `depth` is that of the node it has come to. */
struct climb {
    struct leg *legs;
    uint32_t count, depth, deepest;
};

static void add_hop(struct climb *c, unsigned dim, bool plus, uint32_t step)
{
    c->legs[c->count++] =
        (struct leg){.step = step, .hops = 1, .dim = (uint8_t)dim, .direction = plus ? 1 : -1};
}

/* From `hops` away from where the way turned into this dimension, to `end` away. */
static void climb_up(struct climb *c, unsigned dim, int64_t hops, int64_t end)
{
    for (uint32_t left = length(hops - end); left > 0; left--, c->depth--)
        add_hop(c, dim, hops < 0, c->deepest - c->depth);
}

static void climb_down(struct climb *c, unsigned dim, int64_t start, int64_t hops)
{
    for (uint32_t left = length(hops - start); left > 0; left--)
        add_hop(c, dim, hops > 0, c->deepest + ++c->depth - 1);
}

static uint32_t tree_route(const struct torus *t, uint32_t source, uint32_t destination,
                           uint32_t segment, struct leg *legs)
{
    uint32_t at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    int64_t up[TORUS_MAX_DIMS], down[TORUS_MAX_DIMS];
    struct climb c = {.legs = legs, .deepest = depth(t)};
    unsigned fork = 0; /* the first dimension in which their ways from the root differ */

    (void)segment;
    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++) {
        up[i] = from_root(t, i, at[i]);
        down[i] = from_root(t, i, to[i]);
        c.depth += length(up[i]);
    }
    while (up[fork] == down[fork])
        fork++;

    int64_t shared = common(up[fork], down[fork]);
    for (unsigned i = t->dims; --i > fork;)
        climb_up(&c, i, up[i], 0);
    climb_up(&c, fork, up[fork], shared);
    climb_down(&c, fork, shared, down[fork]);
    for (unsigned i = fork + 1; i < t->dims; i++)
        climb_down(&c, i, 0, down[i]);
    return c.count;
}

const struct algorithm algorithm_tree = {
    .name = "tree",
    .summary = "up and down a spanning tree, one message an edge each way: for a few bytes",
    .accepts_text = "any torus or mesh",
    .startups = "2D, D = sum of floor(n_i/2)",
    .transmission = "2 * sum over depths of m*(N-m), m = nodes below the fullest edge there",
    .source = "this project; gather and scatter combined",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = tree_accepts,
    .max_legs = tree_max_legs,
    .period = tree_period,
    .route = tree_route,
};
