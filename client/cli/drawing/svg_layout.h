/* Where the nodes of a torus lie in a picture. The last dimension of more than one node goes to the
 * right, the one before it goes down; these two make a plane, drawn in a frame. Further dimensions
 * are planes side by side and below each other, in turn. Lengths are in pixels; y grows downwards. */
#ifndef TORUSD_CLI_SVG_LAYOUT_H
#define TORUSD_CLI_SVG_LAYOUT_H

#include "daemon/schedule/torus.h"

enum {
    SVG_RADIUS = 10, /* of a node */
    SVG_MARGIN = 40, /* from a frame to the centres of the outermost nodes */
};

struct point {
    double x, y;
};

struct svg_layout {
    const struct torus *torus;    /* borrowed */
    unsigned axes;                /* dimensions of more than one node */
    uint8_t axis[TORUS_MAX_DIMS]; /* of a dimension: 0 right, 1 down, then planes; a dimension
                                         * of one node has none, its entry means nothing */
    uint32_t across, down;        /* nodes of a plane */
    uint32_t planes_across, planes_down;
    int pitch;                     /* from a node to the next one */
    int frame_width, frame_height; /* of a plane */
    int plane_width, plane_height; /* the same with the space to the next one */
    int width, height;             /* of all planes */
};

struct svg_layout svg_layout_make(const struct torus *t);

/* The upper left corner of a node's frame, and the node's centre. */
struct point svg_layout_frame(const struct svg_layout *l, uint32_t node);
struct point svg_layout_node(const struct svg_layout *l, uint32_t node);

/* Whether the node is the first one of its plane. */
bool svg_layout_begins_plane(const struct svg_layout *l, uint32_t node);

/* The unit vector in which the arrows of a port point, from whatever node. */
struct point svg_layout_port(const struct svg_layout *l, unsigned port);

/* Whether the port leads to another plane. */
static inline bool svg_layout_leaves_plane(const struct svg_layout *l, unsigned port)
{
    return l->axis[torus_port_dim(port)] > 1;
}

#endif
