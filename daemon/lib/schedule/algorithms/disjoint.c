/* Allgather and broadcast of blocks so large that only bytes count. A source sends the parts of its
 * block along different trees, no two of which use the same channel. So a channel carries one part
 * in a broadcast, and at most N - 1 parts, one from each source, in an allgather of N nodes. If
 * there are as many trees as a node has links, this is the lower bound of both operations, without
 * rounding: no node can receive a block by fewer channels.
 *
 * Torus of d dimensions: 2d trees, one for each dimension i and direction s, which use every
 * channel except those into the source. Let the source be at 0 in all dimensions. The tree of i and
 * s extends along i in direction s, then along dimensions i + 1, i + 2, ..., cyclically to i - 1,
 * always in direction s. The nodes at 0 in dimension i come last: the tree reaches them from the
 * end of the ring, by a hop in i. No two trees share a channel: consider the channel in direction s
 * along dimension j into a node w. If w is at 0 in j, only the tree of j uses it, for its last hop.
 * Otherwise only the tree of the first dimension after j, in the cyclic order, in which w is not at
 * 0 (of j itself if there is no other).
 *
 * Mesh of d dimensions: d trees, made in the same way, except that a tree extends along a line in
 * both directions away from the source; the last hop in i leads back to 0 from a neighbour.
 *
 * If only some dimensions wrap, their rings are cut opposite to the source and used as lines,
 * except for the largest ring, in dimension r, if it has n >= 3 nodes. r comes first in the order
 * of dimensions, and all trees extend along r in direction +. There is one additional tree, which
 * extends along r in direction -. In every ring along r except the source's own, it enters at
 * coordinate n - 2 by the channel that the tree of r would use there, and continues in direction -
 * until n - 1. The tree of r then enters n - 2 from n - 1, by the only channel in direction - that
 * is left. So there are d + 1 trees. If no other dimension wraps, that is one for each link of the
 * nodes with the fewest.
 *
 * Part k of a block uses tree k modulo the number of trees: 12 parts use 1, 2, 3, 4, 6 or 12 trees
 * evenly. */
#include "daemon/lib/schedule/algorithms/rows.h"

enum { PARTS = 12 };

/* The dimensions of more than one node, in the order in which the trees take them. */
struct grove {
    const struct torus *torus;
    unsigned count;
    unsigned dim[TORUS_MAX_DIMS];
    bool rings; /* all of them wrap: each has a tree for either direction */
    bool extra; /* the first of them is a ring with an additional tree */
    uint32_t trees;
};

static struct grove grove_of(const struct torus *t)
{
    struct grove g = {.torus = t, .rings = true};
    unsigned ring = 0; /* the largest ring that can have an additional tree */
    uint32_t largest = 2;

    for (unsigned i = 0; i < t->dims; i++) {
        if (t->size[i] == 1)
            continue;
        g.rings = g.rings && t->wrap[i];
        if (t->wrap[i] && t->size[i] > largest) {
            largest = t->size[i];
            ring = g.count;
        }
        g.dim[g.count++] = i;
    }
    g.extra = !g.rings && largest > 2;
    if (g.extra) {
        unsigned first = g.dim[ring];
        g.dim[ring] = g.dim[0];
        g.dim[0] = first;
    }
    g.trees = g.rings ? 2 * g.count : g.count + g.extra;
    return g;
}

/* A node as a tree sees it: its offset from the source, by dimension of the torus. */
struct place {
    const uint32_t *source;
    uint32_t offset[TORUS_MAX_DIMS]; /* modulo the size; on a line, too */
};

/* A hop into a node. Routes are found backwards, against these hops. */
struct hop {
    unsigned dim;
    int direction;
};

/* The last hop into a node that is not at the source's position in this dimension: on a ring in the
 * tree's direction, on a line away from the source. */
static struct hop away(const struct grove *g, const struct place *p, unsigned dim, int direction)
{
    uint32_t size = g->torus->size[dim];
    bool one_way = g->rings || (g->extra && dim == g->dim[0]);

    if (!one_way && g->torus->wrap[dim])
        direction = 2 * p->offset[dim] <= size ? 1 : -1;
    else if (!one_way)
        direction = p->source[dim] + p->offset[dim] < size ? 1 : -1;
    return (struct hop){dim, direction};
}

/* The last hop into a node that is at the source's position in this dimension, along the same
 * dimension from a neighbour. */
static struct hop aside(const struct grove *g, const struct place *p, unsigned dim, int direction)
{
    bool one_way = g->rings || (g->extra && dim == g->dim[0]);

    if (!one_way)
        direction = g->torus->wrap[dim] || p->source[dim] + 1 < g->torus->size[dim] ? -1 : 1;
    return (struct hop){dim, direction};
}

/* The last dimension, in the order of the tree of the dimension at `first`, in which the node is
 * not at the source's position. `first` is the last to be considered, and is not checked. */
static unsigned last_moved(const struct grove *g, const struct place *p, unsigned first)
{
    for (unsigned i = g->count; i-- > 1;) {
        unsigned at = (first + i) % g->count;
        if (p->offset[g->dim[at]] != 0)
            return at;
    }
    return first;
}

/* The last hop into a node, in the tree of the dimension at `first`. */
static struct hop hop_into(const struct grove *g, const struct place *p, unsigned first,
                           int direction)
{
    if (p->offset[g->dim[first]] == 0)
        return aside(g, p, g->dim[first], direction);
    return away(g, p, g->dim[last_moved(g, p, first)], direction);
}

/* As hop_into(), where the first dimension is a ring with an additional tree: in the ring's own
 * tree or, with `other`, in the additional one. */
static struct hop hop_around(const struct grove *g, const struct place *p, bool other)
{
    unsigned ring = g->dim[0];
    uint32_t enters = g->torus->size[ring] - 2;
    unsigned last = last_moved(g, p, 0);
    bool on_axis = last == 0;
    bool swapped = !on_axis && p->offset[ring] == enters;

    if (other == swapped)
        return other ? away(g, p, g->dim[last], 1) : hop_into(g, p, 0, 1);
    return (struct hop){ring, -1};
}

static struct hop last_hop(const struct grove *g, const struct place *p, uint32_t tree)
{
    if (g->extra && (tree == 0 || tree == g->count))
        return hop_around(g, p, tree != 0);
    return hop_into(g, p, tree % g->count, tree < g->count ? 1 : -1);
}

static int disjoint_accepts(const struct torus *t, struct error *e)
{
    (void)t, (void)e;
    return 0;
}

/* A tree goes along a dimension at most once, and takes one last hop. The additional tree of a ring
 * begins with two hops along the ring, and goes along it once more. */
static uint32_t disjoint_max_legs(const struct torus *t)
{
    uint32_t legs = 1, largest = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        legs += t->size[i] - 1;
        largest = t->size[i] > largest ? t->size[i] : largest;
    }
    return legs + (largest > 2 ? 2 : 0);
}

/* Finds the route backwards, from the destination, and then reverses it. */
static uint32_t disjoint_route(const struct torus *t, uint32_t source, uint32_t destination,
                               uint32_t segment, struct leg *legs)
{
    const struct grove g = grove_of(t);
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], count = 0, left = 0;
    struct place p = {.source = from};

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++) {
        p.offset[i] = (to[i] + t->size[i] - from[i]) % t->size[i];
        left += p.offset[i] != 0;
    }
    while (left > 0) {
        struct hop hop = last_hop(&g, &p, segment % g.trees);
        uint32_t *offset = &p.offset[hop.dim], size = t->size[hop.dim];

        left -= *offset != 0;
        *offset = (*offset + size - (uint32_t)hop.direction) % size;
        left += *offset != 0;
        legs[count++] =
            (struct leg){.hops = 1, .dim = (uint8_t)hop.dim, .direction = (int8_t)hop.direction};
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        struct leg leg = legs[i];
        legs[i] = legs[count - 1 - i];
        legs[count - 1 - i] = leg;
    }
    for (uint32_t i = 0; i < count; i++)
        legs[i].step = i;
    return count;
}

const struct algorithm algorithm_disjoint = {
    .name = "disjoint",
    .summary = "parts of a block along trees that share no channel, for large blocks",
    .accepts_text = "any torus or mesh",
    .startups = "on tori the sum of the sizes - d + 1, on a ring n - 1",
    .transmission = "(N-1)/(2d) on any channel of a torus in all, (N-1)/d of a mesh",
    .source = "this project; Edmonds, Edge-disjoint branchings, says how many there can be",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = PARTS,
    .streaming = true,
    .accepts = disjoint_accepts,
    .max_legs = disjoint_max_legs,
    .period = torus_full_period,
    .route = disjoint_route,
};
