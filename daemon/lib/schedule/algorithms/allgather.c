#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rotation.h"
#include "daemon/lib/schedule/tree.h"

/* All-to-all broadcast on a torus or mesh of two dimensions that loads no channel above the lower
 * bound, with one exception (below): ceil((N-1)/d) blocks for N nodes, where d is the number of
 * links of the node with the fewest. The goals are those of Yang and Wang's broadcast pattern
 * (yangwang.c), the rule is ours.
 *
 * A block spreads from its source by controlled flooding: in each phase it reaches all nodes that
 * are one hop further away. Yang and Wang say how a node passes a block on. That rule attains the
 * bound on n x n meshes and odd n x n tori. Here the rule says by which of its links a node
 * receives a block: from some neighbour that is nearer to the source. Whichever neighbour that is,
 * every node receives every block exactly once, over a shortest path. So only the loads have to be
 * counted, and each node's links share the blocks evenly. The trees differ from the pattern's even
 * on odd n x n tori (16 of 24 nodes have the same parent on 5x5, 32 of 48 on 7x7).
 *
 * Seen from a node, the other sources are in its row, in its column, or in one of four boxes
 * between two of its links. A block from its row or column can come in by one link only, a block
 * from a box by either of two links. Number the cells of a box by distance. n*k/t of the first n cells come in along
 * the row, rounded down in two boxes that face each other and rounded up in the two others. So each link borders on one
 * box of either kind. How k/t is chosen:
 * - Torus: all nodes are alike, and so are two boxes that face each other. A link in the row gets
 *   as many blocks as a link in the column, within one. On even rings some sources are equally near
 *   to two links: each box gets those along one of its sides; the exact opposite, the opposite in
 *   the row and the opposite in the column go to three different links.
 * - Mesh: to suit the corners, which have one box. A node further in receives fewer blocks by each
 *   link. A node at an edge receives exactly as many by a link along the edge, because one of its
 *   boxes rounds down and the other one up.
 *
 * Rings, lines and cylinders (one dimension wraps) keep to the bound as well. If the rings of a
 * cylinder have exact opposites, these are shared out separately, alternately between the two links
 * of the ring, and make up for the rounding of the boxes beside them. Some phases then take longer
 * than with the boxes alone. The exception is a cylinder with rings of two and lines of m > 4
 * nodes: the end of a line can receive the m - 1 blocks of its own line by one link only, and m - 1
 * is above the bound, ceil((2m-1)/3).
 *
 * There are as many steps as the diameter, the fewest possible. On odd n x n tori every phase is
 * balanced too, and the transmission is the bound, as in the paper. On others, rounding costs up to
 * one block in a phase. */

enum { COLUMN, ROW }; /* the two axes: along a column (+ is down), along a row (+ is right) */

/* The torus as rows and columns, and how its boxes are shared out. */
struct plane {
    const struct torus *torus;
    unsigned dim[2];  /* by axis */
    uint32_t size[2]; /* nodes in a column, in a row */
    bool wrap[2];
    uint64_t k, t; /* of t sources in boxes, k reach the node along its row */
};

/* The link through which a block comes in to a node: its axis, and on which side of the node it is. */
struct arrival {
    unsigned axis;
    int direction;
};

/* Whether some nodes are equally near in both directions. */
static bool has_opposite(const struct plane *p, unsigned axis)
{
    return p->wrap[axis] && p->size[axis] % 2 == 0;
}

/* The largest distance of a source for which `direction` along the axis is the shorter path from a
 * node with coordinate x. */
static uint32_t reach(const struct plane *p, unsigned axis, uint32_t x, int direction)
{
    if (p->wrap[axis])
        return (p->size[axis] - 1) / 2;
    return direction > 0 ? p->size[axis] - 1 - x : x;
}

/* Finds k and t from the boxes around a node with the fewest links: a corner of a mesh, or an end
 * of a cylinder. On a torus from two of the four boxes, one of each kind, since the other two
 * mirror them. */
static void share_out(struct plane *p)
{
    int64_t down = reach(p, COLUMN, 0, 1), right = reach(p, ROW, 0, 1);
    int64_t tie_down = has_opposite(p, COLUMN), tie_right = has_opposite(p, ROW);
    int64_t column_links = 1, row_links = 1, cells, share;

    if (p->wrap[COLUMN] == p->wrap[ROW]) {
        cells =
            p->wrap[ROW] ? (down + tie_down) * right + down * (right + tie_right) : down * right;
    } else if (p->wrap[ROW]) {
        row_links = 2;
        cells = down * (2 * right + tie_right);
    } else {
        column_links = 2;
        cells = (2 * down + tie_down) * right;
    }
    /* Solves right + share / row_links = down + (cells - share) / column_links. Rounds in favour of
     * the links that have no opposite node to themselves. */
    share = row_links * column_links * (down - right) + row_links * cells;
    share += tie_down && !tie_right ? row_links + column_links - 1 : 0;
    share /= row_links + column_links;
    /* The share is negative on a ring of 2 in one dimension only, and without boxes. */
    p->k = (uint64_t)(share > 0 ? share : 0);
    p->t = (uint64_t)(cells > 0 ? cells : 1);
}

/* Returns whether the torus has no more than two dimensions of more than one node. */
static bool make_plane(struct plane *p, const struct torus *t)
{
    unsigned found = 0;

    *p = (struct plane){.torus = t, .size = {1, 1}};
    for (unsigned i = t->dims; i-- > 0;) {
        if (t->size[i] == 1)
            continue;
        if (found == 2)
            return false;
        unsigned axis = found++ == 0 ? ROW : COLUMN;
        p->dim[axis] = i;
        p->size[axis] = t->size[i];
        p->wrap[axis] = t->wrap[i];
    }
    if (found < 2)
        p->wrap[COLUMN] = p->wrap[ROW]; /* a column of one node may be of either kind */
    share_out(p);
    return true;
}

static uint64_t triangle(int64_t n)
{
    return n > 0 ? (uint64_t)n * (uint64_t)(n + 1) / 2 : 0;
}

/* The number of cells (i, j), 1 <= i <= rows, 1 <= j <= columns, that come before (x, y): by
 * distance, then by row. */
static uint64_t cells_before(uint32_t rows, uint32_t columns, uint32_t x, uint32_t y)
{
    int64_t shells = (int64_t)x + y - 2; /* whole ones: i + j < x + y */
    uint64_t nearer = triangle(shells) - triangle(shells - rows) - triangle(shells - columns) +
                      triangle(shells - rows - columns);
    uint32_t first_row = x + y > columns + 1 ? x + y - columns : 1;

    return nearer + (x - first_row);
}

/* Whether the source with `before` others before it in its box comes in along the row: with it, the
 * rounded count of those that do is one higher. */
static bool comes_along_row(const struct plane *p, uint64_t before, bool round_up)
{
    uint64_t extra = round_up ? p->t - 1 : 0;
    return ((before + 1) * p->k + extra) / p->t > (before * p->k + extra) / p->t;
}

/* Whether cell number `before` is chosen, if `chosen` of `cells` cells are chosen as evenly as possible. */
static bool is_chosen(uint64_t before, uint64_t chosen, uint64_t cells)
{
    return (before + 1) * chosen / cells > before * chosen / cells;
}

/* Whether the plane is a cylinder whose rings have exact opposites. If so, *ring is their axis. */
static bool is_even_cylinder(const struct plane *p, unsigned *ring)
{
    *ring = p->wrap[ROW] ? ROW : COLUMN;
    return p->wrap[ROW] != p->wrap[COLUMN] && has_opposite(p, *ring) && p->size[1 - *ring] > 1;
}

/* The sources on one side of a node of a cylinder, in other rings than its own: two boxes, and
 * between them the sources exactly opposite in their rings. */
struct side {
    uint64_t cells;     /* of a box */
    uint64_t box[2];    /* how many of each box come in along the ring, from - and from + */
    uint64_t opposites; /* how many opposites come in along the ring, alternating between - and + */
    int first;          /* the direction from which the first of them comes in */
};

/* Shares out a side of `rings` rings. *lead is how many more blocks have come in along the ring
 * from + than from - so far, between -1 and 1, and is updated. */
static struct side share_side(const struct plane *p, unsigned ring, uint32_t rings, int *lead)
{
    uint64_t n = p->size[ring], m = p->size[1 - ring];
    uint64_t along_ring = n * m - 1 - (n * m - 1) / 3; /* blocks that come in along the ring at
                                                        * an end of the cylinder, which has three
                                                        * links */
    uint64_t share = along_ring - (n - 1);             /* of these, the blocks from other rings */
    uint64_t both = (n - 1) * (m - 1);                 /* blocks that may come in either way */
    struct side s = {.cells = (n / 2 - 1) * rings};

    if (rings == 0)
        return s;
    if (share > both)
        share = both; /* rings of two: all other blocks have only one shortest path */
    share = share * rings / (m - 1);
    uint64_t low = s.cells * share / ((n - 1) * rings);
    uint64_t high = low + (s.cells * share % ((n - 1) * rings) != 0);
    if (low + high > share)
        high = low;
    if (low + high + rings < share)
        low = high;
    s.opposites = share - low - high;
    /* A box with one block more and an odd opposite make up for each other. If only one of the two
     * exists, it makes up for the lead. */
    int more = (int)(high - low), odd = (int)(s.opposites % 2);
    int sign = (more - odd) * *lead > 0 ? -1 : 1;
    s.box[sign > 0] = high;
    s.box[sign < 0] = low;
    s.first = -sign;
    *lead += sign * (more - odd);
    return s;
}

/* arrives_by() on a cylinder whose rings have exact opposites, for a source in another ring. */
static struct arrival arrives_by_in_cylinder(const struct plane *p, unsigned ring,
                                             const uint32_t *node, const uint32_t *hops,
                                             const int *direction)
{
    uint32_t x = node[p->dim[1 - ring]];
    int lead = 1; /* the block of the opposite node in the ring arrives from + */
    struct side up = share_side(p, ring, p->size[1 - ring] - 1 - x, &lead);
    struct side down = share_side(p, ring, x, &lead);
    int beyond = direction[1 - ring];
    const struct side *s = beyond > 0 ? &up : &down;
    uint32_t rings = beyond > 0 ? p->size[1 - ring] - 1 - x : x;

    if (direction[ring] != 0) {
        uint64_t before = cells_before(rings, p->size[ring] / 2 - 1, hops[1 - ring], hops[ring]);
        bool along = is_chosen(before, s->box[direction[ring] > 0], s->cells);
        return along ? (struct arrival){ring, direction[ring]} : (struct arrival){1 - ring, beyond};
    }
    uint64_t before = hops[1 - ring] - 1;
    if (!is_chosen(before, s->opposites, rings))
        return (struct arrival){1 - ring, beyond};
    uint64_t turn = before * s->opposites / rings;
    return (struct arrival){ring, turn % 2 == 0 ? s->first : -s->first};
}

/* The link through which a node receives the block of a source; both are given by their coordinates. */
static struct arrival arrives_by(const struct plane *p, const uint32_t *node,
                                 const uint32_t *source)
{
    uint32_t hops[2] = {0};
    int direction[2] = {0};
    bool opposite[2];

    for (unsigned axis = COLUMN; axis <= ROW; axis++) {
        unsigned dim = p->dim[axis];
        if (p->size[axis] > 1)
            hops[axis] = torus_shortest(p->torus, dim, node[dim], source[dim], &direction[axis]);
        opposite[axis] = hops[axis] > 0 && direction[axis] == 0;
    }
    if (opposite[COLUMN] && opposite[ROW])
        return (struct arrival){ROW, -1};
    for (unsigned axis = COLUMN; axis <= ROW; axis++)
        if (hops[1 - axis] == 0)
            return (struct arrival){axis, opposite[axis] ? 1 : direction[axis]};
    unsigned ring;
    if (is_even_cylinder(p, &ring))
        return arrives_by_in_cylinder(p, ring, node, hops, direction);

    /* Each box gets the opposites along one of its sides, like the sails of a windmill: the opposites in the column
     * belong to the boxes down right and up left, those in the row to the other two. */
    if (opposite[COLUMN])
        direction[COLUMN] = direction[ROW];
    if (opposite[ROW])
        direction[ROW] = -direction[COLUMN];
    bool falling = direction[COLUMN] == direction[ROW];
    uint32_t rows = reach(p, COLUMN, node[p->dim[COLUMN]], direction[COLUMN]);
    uint32_t columns = reach(p, ROW, node[p->dim[ROW]], direction[ROW]);
    if (falling)
        rows += has_opposite(p, COLUMN);
    else
        columns += has_opposite(p, ROW);
    uint64_t before = cells_before(rows, columns, hops[COLUMN], hops[ROW]);
    unsigned axis = comes_along_row(p, before, !falling) ? ROW : COLUMN;
    return (struct arrival){axis, direction[axis]};
}

static bool balanced_takes(const struct torus *t)
{
    struct plane p;
    return make_plane(&p, t);
}

/* Finds the route backwards: from the destination, always to the neighbour that it receives the
 * block from. */
static uint32_t balanced_route(const struct torus *t, uint32_t source, uint32_t destination,
                               uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];
    uint32_t count = torus_distance(t, source, destination);
    struct plane p;

    (void)segment;
    (void)make_plane(&p, t);
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, at);
    for (uint32_t step = count; step-- > 0;) {
        struct arrival arrival = arrives_by(&p, at, from);
        unsigned dim = p.dim[arrival.axis];

        legs[step] = (struct leg){
            .step = step, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)-arrival.direction};
        at[dim] = (at[dim] + t->size[dim] + (uint32_t)arrival.direction) % t->size[dim];
    }
    return count;
}

const struct algorithm algorithm_balanced = {
    .name = "balanced",
    .summary = "controlled flooding in which all links of a node bring the same number of blocks",
    .accepts_text = "tori and meshes of up to two dimensions of more than one node",
    .startups = "the diameter",
    .transmission =
        "(n^2-1)/4 on n x n tori, n odd; ceil((N-1)/d) on any channel in all (2 x m, where "
        "only the 2 wraps and m > 4: m - 1)",
    .source = "this project; after Yang and Wang's broadcast pattern (yangwang)",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = balanced_takes,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = balanced_route,
};

/* All-to-all broadcast along rows, then along columns, on any torus or mesh. Saad and Schultz, Data
 * Communication in Parallel Architectures, as described in Yang, Wang: All-to-All Communication,
 * "Comparisons".
 *
 * Each node passes its block along its row in both directions, then all blocks of its row along its
 * column in both directions, and so on through the dimensions, the last one first. All blocks that
 * leave by a port in one step are one message.
 *
 * The paper counts two startups, because its links pipeline; here every hop is a step. Either way
 * half of the links are idle, and the transmission is twice the bound: (n^2-1)/2 on n x n tori, n
 * odd. On even rings, half of the blocks go to the opposite node in either direction, by the parity
 * of their offsets so far: n^2/2 on n x n. */

static uint32_t saadschultz_route(const struct torus *t, uint32_t source, uint32_t destination,
                                  uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t first_step = 0, come = 0, count = 0;

    (void)segment;
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned dim = t->dims; dim-- > 0;) {
        int direction = come % 2 == 0 ? 1 : -1; /* to the opposite node */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);

        for (uint32_t hop = 0; hop < hops; hop++)
            legs[count++] = (struct leg){.step = first_step + hop,
                                         .hops = 1,
                                         .dim = (uint8_t)dim,
                                         .direction = (int8_t)direction};
        first_step += torus_longest_path(t, dim);
        come += (to[dim] + t->size[dim] - from[dim]) % t->size[dim];
    }
    return count;
}

const struct algorithm algorithm_saadschultz = {
    .name = "saadschultz",
    .summary = "all-to-all broadcast along every row, then along every column",
    .accepts_text = "any torus or mesh",
    .startups = "the diameter",
    .transmission = "(n^2-1)/2 on n x n tori, n odd; n^2/2, n even",
    .source = "Saad, Schultz, as in Yang, Wang, All-to-All Communication, Comparisons",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = saadschultz_route,
};

/* All-to-all broadcast of blocks in segments that take different ways, so that together they load
 * the channels more evenly than a whole block could. Each segment sees the torus with its
 * dimensions in another order, every second one also mirrored.
 *
 * In up to two dimensions the trees are those of `balanced`. Whole blocks can load some channels
 * with one block more than others; the segments together load every channel of a torus with (N-1)/d
 * blocks for d links a node, the lower bound, or a quarter of a block more if one size is odd and
 * the other even. In more dimensions the trees are those of `saadschultz`, which load the last
 * dimension most. If all dimensions have the same size, the segments together attain (N-1)/d, too,
 * like the buckets of Jain, Sabharwal: Optimal Bucket Algorithms for Large MPI Collectives on Torus
 * Interconnects (2010).
 *
 * The algorithm is not in the registry, since its blocks must be split. */

/* The torus as a segment sees it. */
struct view {
    struct torus torus;
    unsigned dim[TORUS_MAX_DIMS]; /* by dimension of the view: the real one */
    bool mirrored;
};

static struct view make_view(const struct torus *t, uint32_t segment)
{
    const struct rotation order = rotation_of(t);
    struct view v = {.torus = *t, .mirrored = segment % 2 == 1};

    for (unsigned i = 0; i < t->dims; i++)
        v.dim[i] = i;
    for (unsigned i = 0; i < order.count; i++)
        v.dim[order.dim[i]] = order.dim[(i + segment / 2) % order.count];
    for (unsigned i = 0; i < t->dims; i++) {
        v.torus.size[i] = t->size[v.dim[i]];
        v.torus.wrap[i] = t->wrap[v.dim[i]];
    }
    return v;
}

static uint32_t seen(const struct view *v, const struct torus *t, uint32_t node)
{
    uint32_t real[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, real);
    for (unsigned i = 0; i < t->dims; i++)
        at[i] = v->mirrored ? v->torus.size[i] - 1 - real[v->dim[i]] : real[v->dim[i]];
    return torus_rank(&v->torus, at);
}

static uint32_t even_route(const struct torus *t, uint32_t source, uint32_t destination,
                           uint32_t segment, struct leg *legs)
{
    const struct view v = make_view(t, segment);
    const struct algorithm *a =
        rotation_of(t).count <= 2 ? &algorithm_balanced : &algorithm_saadschultz;
    uint32_t count =
        algorithm_route(a, &v.torus, seen(&v, t, source), seen(&v, t, destination), 0, legs);

    for (uint32_t i = 0; i < count; i++) {
        legs[i].dim = (uint8_t)v.dim[legs[i].dim];
        legs[i].direction = (int8_t)(v.mirrored ? -legs[i].direction : legs[i].direction);
    }
    return count;
}

#define EVEN(parts)                                                                                \
    {                                                                                              \
        .name = "even", .summary = "all-to-all broadcast, in segments that go different ways",     \
        .accepts_text = "any torus or mesh", .startups = "the diameter",                           \
        .transmission = "(N-1)/d with up to two dimensions, or with equal ones",                   \
        .source = "this project; Jain, Sabharwal", .operation = OPERATION_ALLGATHER,               \
        .port_model = PORT_MODEL_ALL, .segments = (parts), .max_legs = torus_diameter,             \
        .period = torus_full_period, .route = even_route,                                          \
    }

const struct algorithm *even_algorithm(const struct torus *t)
{
    /* By the number of dimensions with more than one node. */
    static const struct algorithm even[TORUS_MAX_DIMS + 1] = {
        EVEN(1), EVEN(2), EVEN(4), EVEN(6), EVEN(8), EVEN(10), EVEN(12), EVEN(14), EVEN(16)};
    return &even[rotation_of(t).count];
}

/* An allgather on any network: from each node along the tree of tree.h, whose root the node is. All
 * paths are shortest paths, through the dimensions in order. A block crosses a link of the tree in the
 * step that is the distance of the link's farther end. */

static bool trees_takes(const struct torus *t)
{
    /* Rings and lines have algorithms that load their channels evenly. */
    return !torus_is_plain(t);
}

static uint32_t trees_route(const struct torus *t, uint32_t source, uint32_t destination,
                            uint32_t segment, struct leg *legs)
{
    uint32_t hops = torus_distance(t, source, destination), here = destination;

    (void)segment;
    for (uint32_t i = hops; i-- > 0;) {
        unsigned up = (unsigned)tree_parent(t, source, here), down = torus_port_opposite(t, up);
        legs[i] = (struct leg){.step = i,
                               .hops = 1,
                               .dim = (uint8_t)torus_port_dim(t, down),
                               .direction = (int8_t)torus_port_direction(t, down)};
        here = torus_neighbour(t, here, up);
    }
    return hops;
}

const struct algorithm algorithm_trees = {
    .name = "trees",
    .summary = "from each node along a tree of shortest paths, dimension after dimension",
    .accepts_text = "networks with other factors than rings and lines",
    .startups = "the longest path",
    .transmission = "no formula",
    .source = "this project",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .any_graph = true,
    .takes = trees_takes,
    .max_legs = torus_diameter,
    .period = torus_no_period,
    .route = trees_route,
};

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
    .max_legs = disjoint_max_legs,
    .period = torus_full_period,
    .route = disjoint_route,
};
