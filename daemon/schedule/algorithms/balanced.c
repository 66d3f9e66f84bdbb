/* All-to-all broadcast on a torus or mesh of two dimensions, without a channel above the bound where
 * that is possible. The goals of Yang and Wang's broadcast pattern (yangwang.c), with another rule:
 * a block spreads from its source by controlled flooding, in each phase to all nodes one hop further
 * away, and each node's links share the blocks that come to it evenly.
 *
 * The pattern's rule says how a node passes a block on; it serves odd tori, and n x n ones, best.
 * Here the rule is reversed: it says by which of its links a node receives a block. The node
 * receives the block from a neighbour nearer to the source, so every node gets every block exactly
 * once, over a shortest path, whichever neighbour that is; only the loads have to be counted. The
 * trees differ from the pattern's, on odd n x n tori too (16 of 24 nodes have the same parent on
 * 5x5, 32 of 48 on 7x7).
 *
 * Seen from a node, blocks of sources in its own row or column can come in by one link only, those
 * of sources in a box between two of its links by either. The cells of a box are numbered by
 * distance. Of the first n cells, n*k/t come in along the row, rounded down in two boxes that face
 * each other and up in the two others. So each link has one box of either kind, and
 * - on a torus all nodes are alike, and so are two boxes that face each other. k/t is such that a
 *   link in the row gets as many blocks as one in the column, within one. Of the sources that two
 *   links are equally near to, on even rings, each box gets those on one of its sides; the node
 *   exactly opposite and those opposite in the row and the column go to three different links.
 * - on a mesh k/t is right for the corners, which have one box. A node further in gets less by each
 *   of its links, and one at the edge exactly as much by the link along it: what is rounded down in
 *   one box is rounded up in the other.
 * Both come to ceil((N-1)/d) blocks on a channel at most, d the fewest links of a node: the bound.
 * So do rings, lines, and cylinders, where one dimension wraps. If rings of a cylinder have exact
 * opposites, these are shared out by themselves, in turns between the two links of the ring, and
 * make up for the rounding of the boxes beside them; for that a phase more or less takes longer
 * than with the boxes alone. On rings of two, lines of m > 4 nodes miss the bound of
 * ceil((2m-1)/3) by what a shortest way costs: an end of a line has to take in the m - 1 blocks of
 * its line by its one link there, and m - 1 is what the busiest channel carries.
 *
 * A block is d hops away after phase d: as many steps as the diameter, which is least. On odd n x n
 * tori every phase is balanced too, so that the transmission is the bound, as in the paper; others
 * lose up to a block in a phase by rounding. */
#include "daemon/schedule/algorithms/rows.h"

enum { COLUMN, ROW }; /* the two axes: along a column (+ is down), along a row (+ is right) */

/* The torus as rows and columns, and how its boxes are shared out. */
struct plane {
    const struct torus *torus;
    unsigned dim[2];  /* by axis */
    uint32_t size[2]; /* nodes in a column, in a row */
    bool wrap[2];
    uint64_t k, t; /* k of t sources in boxes come in along the row */
};

/* The link of a node by which a block comes in: on which axis, and on which side. */
struct way {
    unsigned axis;
    int direction;
};

/* Whether some nodes are equally near in both directions. */
static bool has_opposite(const struct plane *p, unsigned axis)
{
    return p->wrap[axis] && p->size[axis] % 2 == 0;
}

/* How far away, at the most, the sources are for which this direction along the axis is the
 * shorter way, from a node with coordinate x. */
static uint32_t reach(const struct plane *p, unsigned axis, uint32_t x, int direction)
{
    if (p->wrap[axis])
        return (p->size[axis] - 1) / 2;
    return direction > 0 ? p->size[axis] - 1 - x : x;
}

/* Finds k and t from the boxes around a node with the fewest links: a corner of a mesh, an edge.
 * On a torus half of them do, of an even and an uneven kind, since the others mirror them. */
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
    /* Solves right + share / row_links = down + (cells - share) / column_links. Rounds towards
     * the links that do not have a single opposite node to themselves. */
    share = row_links * column_links * (down - right) + row_links * cells;
    share += tie_down && !tie_right ? row_links + column_links - 1 : 0;
    share /= row_links + column_links;
    p->k = (uint64_t)(share > 0 ? share : 0); /* below 0 on a ring of 2 that does not wrap the
                                               * other way, or where there are no boxes */
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

/* Whether this source comes in along the row: whether the first sources of a box up to this one
 * have one more of that kind than those up to the one before. */
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

/* Whether it is a cylinder whose rings have exact opposites: then *ring is their axis. */
static bool is_even_cylinder(const struct plane *p, unsigned *ring)
{
    *ring = p->wrap[ROW] ? ROW : COLUMN;
    return p->wrap[ROW] != p->wrap[COLUMN] && has_opposite(p, *ring) && p->size[1 - *ring] > 1;
}

/* The sources on one side of a node of a cylinder, in other rings than its own: two boxes, and
 * between them those at the rings' opposites. */
struct side {
    uint64_t cells;     /* of a box */
    uint64_t box[2];    /* how many of each box come in along the ring, - and + */
    uint64_t opposites; /* how many of the opposites come in along the ring, in turns */
    int first;          /* the direction of the first one */
};

/* Shares out a side of `rings` rings. *lead is how many more blocks come in along the ring from +
 * than from - so far, -1 to 1, and again afterwards. */
static struct side share_side(const struct plane *p, unsigned ring, uint32_t rings, int *lead)
{
    uint64_t n = p->size[ring], m = p->size[1 - ring];
    uint64_t along_ring = n * m - 1 - (n * m - 1) / 3; /* blocks of which come in along the ring
                                                        * at an end of the cylinder, which has
                                                        * three links */
    uint64_t share = along_ring - (n - 1); /* those of them that come from other rings */
    uint64_t both = (n - 1) * (m - 1);     /* blocks that may come in either way */
    struct side s = {.cells = (n / 2 - 1) * rings};

    if (rings == 0)
        return s;
    if (share > both)
        share = both; /* rings of two: the others have only one shortest way */
    share = share * rings / (m - 1);
    uint64_t low = s.cells * share / ((n - 1) * rings);
    uint64_t high = low + (s.cells * share % ((n - 1) * rings) != 0);
    if (low + high > share)
        high = low;
    if (low + high + rings < share)
        low = high;
    s.opposites = share - low - high;
    /* A box that has one more and an odd opposite make up for each other; what is left of them
     * makes up for the lead. */
    int more = (int)(high - low), odd = (int)(s.opposites % 2);
    int sign = (more - odd) * *lead > 0 ? -1 : 1;
    s.box[sign > 0] = high;
    s.box[sign < 0] = low;
    s.first = -sign;
    *lead += sign * (more - odd);
    return s;
}

/* way_in() on such a cylinder, for a source in another ring. */
static struct way way_into_cylinder(const struct plane *p, unsigned ring, const uint32_t *node,
                                    const uint32_t *hops, const int *direction)
{
    uint32_t x = node[p->dim[1 - ring]];
    int lead = 1; /* the opposite in the node's own ring comes from + */
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

/* The link by which a node takes in the source's block, both given by their coordinates. */
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

    /* The four boxes as the sails of a windmill: those opposite in the column belong to the boxes
     * down right and up left, those opposite in the row to the other two. */
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

/* The route is found backwards, from where the destination gets the block. */
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
    .summary = "flooding in which every link of a node brings as many blocks as the others",
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
