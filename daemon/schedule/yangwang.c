/* All-to-all broadcast on a torus or mesh of two dimensions. Yang and Wang: All-to-All
 * Communication, "Broadcast Pattern": a block spreads from its source by controlled flooding, in
 * each phase to all nodes one hop further away, and each node's links share the blocks that come to
 * it evenly.
 *
 * The paper gives the rule by which a node passes a block on. On tori of odd n x n it is right; on
 * even ones, followed to the letter, some nodes get a block twice (4x4: five, 8x8: nine) and some
 * channels more than the bound. So here the rule is turned round: a node says by which of its links
 * it takes in a block. It takes it from a neighbour nearer to the source, so every node gets every
 * block exactly once, over a shortest path, from whichever neighbour; what is left is to count.
 *
 * Seen from a node, the sources in its own row or column can come in by one link only, those in a
 * box between two of its links by either. The cells of a box are numbered by distance, and the
 * first n of them hold n*k/t that come in along the row, rounded down in two boxes that face each
 * other and up in the two others. So each link has one box of either kind, and
 * - on a torus all nodes are alike, and so are two boxes that face each other. k/t is such that a
 *   link in the row gets as many blocks as one in the column, within one. Of the sources that two
 *   links are equally near to, on even rings, each box gets those on one of its sides; the node
 *   exactly opposite and those opposite in the row and the column go to three different links.
 * - on a mesh k/t is right for the corners, which have one box. A node further in gets less by each
 *   of its links, and one at the edge exactly as much by the link along it: what is rounded down in
 *   one box is rounded up in the other.
 * Both come to ceil((N-1)/d) blocks on a channel at most, d the fewest links of a node: the bound.
 * So do rings, lines, and where one dimension wraps, if its size is odd (else 5 more on 4x11).
 *
 * A block is d hops away after phase d: as many steps as the diameter, which is least. On odd n x n
 * tori every phase is balanced too, so that the transmission is the bound, as in the paper; others
 * lose up to a block in a phase by rounding. */
#include "daemon/schedule/registry.h"

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

/* Whether some nodes are as near one way as the other. */
static bool has_opposite(const struct plane *p, unsigned axis)
{
    return p->wrap[axis] && p->size[axis] % 2 == 0;
}

/* How far the sources are, at the most, for which one direction along the axis is the shorter way,
 * from a node with coordinate x. */
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
    /* right + share / row_links = down + (cells - share) / column_links. Rounded towards the links
     * that do not have a single opposite node to themselves. */
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

/* Whether the first of a box's sources up to this one have one more that comes in along the row
 * than those up to the one before. */
static bool comes_along_row(const struct plane *p, uint64_t before, bool round_up)
{
    uint64_t extra = round_up ? p->t - 1 : 0;
    return ((before + 1) * p->k + extra) / p->t > (before * p->k + extra) / p->t;
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

static int yangwang_accepts(const struct torus *t, struct error *e)
{
    struct plane p;
    return make_plane(&p, t) ? 0 : algorithm_refuse(&algorithm_yangwang, t, e);
}

/* The route is found backwards, from where the destination gets the block. */
static uint32_t yangwang_route(const struct torus *t, uint32_t source, uint32_t destination,
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

const struct algorithm algorithm_yangwang = {
    .name = "yangwang",
    .summary = "broadcast pattern: every link of a node brings as many blocks as the others",
    .accepts_text = "tori and meshes of up to two dimensions of more than one node",
    .startups = "the diameter",
    .transmission = "(n^2-1)/4 on n x n tori, n odd; ceil((N-1)/d) on any channel in all",
    .source = "Yang, Wang, All-to-All Communication, Broadcast Pattern",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = yangwang_accepts,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = yangwang_route,
};
