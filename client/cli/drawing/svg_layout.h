/* The places of the nodes of a torus in a picture. Of the dimensions with more than one node, the last goes to the
 * right and the one before it down; these two make a plane, drawn in a frame. Further dimensions alternate between
 * planes side by side and planes below each other. Lengths are in pixels; y grows downwards. */
#pragma once

#include "client/cli/drawing/drawing_part.h"
#include "client/cli/drawing/network_places.h"
#include "client/cli/drawing/point.h"
#include "daemon/lib/schedule/torus.h"

enum {
    SVG_RADIUS = 10, /* of a node */
    SVG_MARGIN = 40, /* from a frame to the centres of the outermost nodes */
};

struct svg_layout {
    const struct torus *torus; /* borrowed */
    struct drawing_part part;  /* that is shown */
    /* Borrowed; NULL if all factors are rings and lines. If there are others, svg_link.h draws links and arrows. */
    const struct network_places *places;
    unsigned axes;                /* dimensions of more than one node */
    uint8_t axis[TORUS_MAX_DIMS]; /* of a dimension: 0 right, 1 down, then planes; a dimension
                                         * of one node has none, its entry means nothing */
    uint32_t across, down;        /* nodes of a plane */
    uint32_t planes_across, planes_down;
    int pitch;                     /* distance from a node to the next one */
    int frame_width, frame_height; /* size of a plane */
    int plane_width, plane_height; /* size of a plane with the space to the next one */
    int width, height;             /* of all planes */
};

struct svg_layout svg_layout_make(const struct torus *t, const struct drawing_part *part,
                                  const struct network_places *places);

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
