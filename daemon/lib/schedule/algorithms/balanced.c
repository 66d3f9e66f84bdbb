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
 * from a box by either of two links. Number the cells of a box by distance. Of the first n cells,
 * n*k/t come in along the row, rounded down in two boxes that face each other and rounded up in the
 * two others. So each link borders on one box of either kind. How k/t is chosen:
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
#include "daemon/lib/schedule/algorithms/rows.h"

enum { COLUMN, ROW }; /* the two axes: along a column (+ is down), along a row (+ is right) */

/* The torus as rows and columns, and how its boxes are shared out. */
struct plane {
    const struct torus *torus;
    unsigned dim[2];  /* by axis */
    uint32_t size[2]; /* nodes in a column, in a row */
    bool wrap[2];
    uint64_t k, t; /* of t sources in boxes, k reach the node along its row */
};

/* The link by which a block comes in to a node: its axis, and on which side of the node it is. */
struct way {
    unsigned axis;
    int direction;
};

/* Whether some nodes are equally near in both directions. */
static bool has_opposite(const struct plane *p, unsigned axis)
{
    return p->wrap[axis] && p->size[axis] % 2 == 0;
}

/* The largest distance of a source for which `direction` along the axis is the shorter way from a
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
        p->wrap[COLUMN] = p->wrap[ROW]; /* a column of one node is whatever suits the row */
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

/* Whether the cell after `before` others is one of the `chosen` of `cells`, spread evenly. */
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
        share = both; /* rings of two: all other blocks have only one shortest way */
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

/* way_in() on a cylinder whose rings have exact opposites, for a source in another ring. */
static struct way way_into_cylinder(const struct plane *p, unsigned ring, const uint32_t *node,
                                    const uint32_t *hops, const int *direction)
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
        return along ? (struct way){ring, direction[ring]} : (struct way){1 - ring, beyond};
    }
    uint64_t before = hops[1 - ring] - 1;
    if (!is_chosen(before, s->opposites, rings))
        return (struct way){1 - ring, beyond};
    uint64_t turn = before * s->opposites / rings;
    return (struct way){ring, turn % 2 == 0 ? s->first : -s->first};
}

/* The link by which a node receives the block of a source; both are given by their coordinates. */
static struct way way_in(const struct plane *p, const uint32_t *node, const uint32_t *source)
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
        return (struct way){ROW, -1};
    for (unsigned axis = COLUMN; axis <= ROW; axis++)
        if (hops[1 - axis] == 0)
            return (struct way){axis, opposite[axis] ? 1 : direction[axis]};
    unsigned ring;
    if (is_even_cylinder(p, &ring))
        return way_into_cylinder(p, ring, node, hops, direction);

    /* Like the sails of a windmill, each box gets the opposites along one of its sides: the
     * opposites in the column belong to the boxes down right and up left, those in the row to the
     * other two. */
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
    return (struct way){axis, direction[axis]};
}

static int balanced_accepts(const struct torus *t, struct error *e)
{
    struct plane p;
    return make_plane(&p, t) ? 0 : algorithm_refuse(&algorithm_balanced, t, e);
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
        struct way way = way_in(&p, at, from);
        unsigned dim = p.dim[way.axis];

        legs[step] = (struct leg){
            .step = step, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)-way.direction};
        at[dim] = (at[dim] + t->size[dim] + (uint32_t)way.direction) % t->size[dim];
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
    .accepts = balanced_accepts,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = balanced_route,
};
