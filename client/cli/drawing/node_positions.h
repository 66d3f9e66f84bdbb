/* Where the nodes of a torus lie in a picture. Lengths are in pixels; y grows downwards. */
#pragma once

#include <math.h>

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/torus.h"

/* A place in a picture, or a vector. */
struct point {
    double x, y;
};

static inline struct point point_plus(struct point a, struct point b, double factor)
{
    return (struct point){a.x + factor * b.x, a.y + factor * b.y};
}

static inline double point_distance(struct point a, struct point b)
{
    return hypot(a.x - b.x, a.y - b.y);
}

/* The unit vector from one point to another; to the right if both are the same. */
static inline struct point point_towards(struct point from, struct point to)
{
    double length = point_distance(from, to);

    if (!(length > 0))
        return (struct point){1, 0};
    return (struct point){(to.x - from.x) / length, (to.y - from.y) / length};
}

/* A vector turned to the left by 90 degrees, as seen in its direction. */
static inline struct point point_left(struct point v)
{
    return (struct point){v.y, -v.x};
}

/* The distance of a point from a straight line between two others. */
static inline double point_off_line(struct point p, struct point a, struct point b)
{
    double length = point_distance(a, b);
    struct point along = point_towards(a, b);
    double at = (p.x - a.x) * along.x + (p.y - a.y) * along.y;

    at = at < 0 ? 0 : at > length ? length : at;
    return point_distance(p, point_plus(a, along, at));
}

/* Finds the dimensions that go to the right (dim[0]) and down (dim[1]) in a picture: the last ones of more than one node;
 * TORUS_MAX_DIMS: none. Returns how many dimensions have more than one node. */
unsigned plane_dims(const struct torus *t, unsigned dim[2]);

/* The nodes along such a dimension; 1 if there is none. */
static inline uint32_t plane_extent(const struct torus *t, unsigned dim)
{
    return dim < t->dims ? t->size[dim] : 1;
}

#define COORDINATES_SIZE (12u * TORUS_MAX_DIMS)

/* Writes the coordinates of a node, "(0, 3)"; with `dim` of plane_dims() those of its plane, "(2, *, *)". Cut to the size.
 * Returns `text`. */
char *coordinates_text(const struct torus *t, uint32_t node, const unsigned *dim, char *text,
                       size_t size);

/* ---- The part that is shown ------------------------------------------------------------------ */

/* All of the torus, or a box of nodes if it is too large. By dimension: the first coordinate, and how many there are. */
struct drawing_part {
    uint32_t first[TORUS_MAX_DIMS], count[TORUS_MAX_DIMS];
};

#define DRAWING_PART_TEXT_SIZE 120

/* Returns a part of at most `most` nodes, with `node` in it unless that is TORUS_NO_NODE. Planes of the
 * last two dimensions stay whole as long as one of them fits. */
struct drawing_part drawing_part_choose(const struct torus *t, uint32_t most, uint32_t node);

bool drawing_part_is_whole(const struct drawing_part *p, const struct torus *t);
uint32_t drawing_part_nodes(const struct drawing_part *p, const struct torus *t);
bool drawing_part_has(const struct drawing_part *p, const struct torus *t, uint32_t node);

/* Whether the row or column of a leg that begins at this node is in the part. If so, *from is how many hops
 * its start is behind the first node of the row or column in the part, as seen in its direction: on a ring
 * from 0 to its size - 1. */
bool drawing_part_has_line(const struct drawing_part *p, const struct torus *t, uint32_t start,
                           const struct leg *leg, uint32_t *from);

/* Whether a leg that begins at this node starts, ends or passes in the part. */
bool drawing_part_is_crossed(const struct drawing_part *p, const struct torus *t, uint32_t start,
                             const struct leg *leg);

/* Whether the part shows anything of such a leg: a picture has no arrows for legs that only pass through
 * a plane, from one plane to another. */
bool drawing_part_shows(const struct drawing_part *p, const struct torus *t, uint32_t start,
                        const struct leg *leg);

/* "(0-3, 0-15, 7)", cut to the size. Returns `text`. */
char *drawing_part_format(const struct drawing_part *p, const struct torus *t, char *text,
                          size_t size);

/* ---- Places ---------------------------------------------------------------------------------- */

/* The places of the nodes of a network with factors that are neither rings nor lines. A frame shows the last two
 * factors of more than one node: a copy of the last one for each node of the one before it, which lie as the nodes of
 * that factor do. Further factors have a frame for each of their nodes. */
struct network_positions {
    bool used;        /* false: the network has only rings and lines; nothing else is set */
    unsigned factors; /* in a frame, up to 2 */
    unsigned dim[2];  /* of the last one, and of the one before it */
    /* By factor and coordinate from the first one that is shown. A node is at the sum of the places in the factors,
     * counted from the upper left node of its frame. */
    struct point *at[2];
    double width,
        height; /* from the leftmost node of a frame to the rightmost one, and from the highest to the lowest */
};

enum {
    SVG_RADIUS = 10, /* of a node */
    SVG_MARGIN = 40, /* from a frame to the centres of the outermost nodes */
};

/* The places of the nodes of a torus in a picture. The last dimension with more than one node goes to the right, and
 * the one before it goes down. These two make a plane, drawn in a frame. Further dimensions alternate between planes
 * side by side and planes below each other. */
struct svg_layout {
    const struct torus *torus; /* borrowed */
    struct drawing_part part;  /* that is shown */
    struct network_positions places;
    unsigned axes;                /* dimensions of more than one node */
    uint8_t axis[TORUS_MAX_DIMS]; /* of a dimension: 0 right, 1 down, then planes; a dimension
                                         * of one node has none, its entry means nothing */
    unsigned dim[2];              /* plane_dims() */
    uint32_t across, down;        /* nodes of a plane */
    uint32_t planes_across, planes_down;
    int pitch;                     /* distance from a node to the next one */
    int frame_width, frame_height; /* size of a plane */
    int plane_width, plane_height; /* size of a plane with the space to the next one */
    int width, height;             /* of all planes */
};

/* Lays out a part of a torus, which must stay in place. Returns 0 with *l, which the caller gives to svg_layout_free(), or
 * -1 if memory is short. */
int svg_layout_make(struct svg_layout *l, const struct torus *t, const struct drawing_part *part);
void svg_layout_free(struct svg_layout *l);

/* Whether the node is in the part that is shown. The other functions take only such nodes. */
bool svg_layout_has(const struct svg_layout *l, uint32_t node);

/* Return the upper left corner of a node's frame, and the centre of the node. */
struct point svg_layout_frame(const struct svg_layout *l, uint32_t node);
struct point svg_layout_node(const struct svg_layout *l, uint32_t node);

/* Returns whether the node is the first one of its plane. */
bool svg_layout_begins_plane(const struct svg_layout *l, uint32_t node);

/* Returns the unit vector in which the arrows of a port point, the same for all nodes; to the right if there are other
 * factors than rings and lines. */
struct point svg_layout_port(const struct svg_layout *l, unsigned port);

/* Returns whether the port leads to another plane. */
static inline bool svg_layout_leaves_plane(const struct svg_layout *l, unsigned port)
{
    return l->axis[torus_port_dim(l->torus, port)] > 1;
}
