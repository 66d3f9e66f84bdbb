/* The links and arrows of a picture of a schedule. */
#pragma once

#include <stdio.h>

#include "client/cli/drawing/node_positions.h"
#include "daemon/lib/schedule/algorithm.h"

struct svg_arrow {
    struct leg leg;
    uint32_t start;
    double width;         /* width of the line */
    uint32_t lane, lanes; /* lane of an arc, and number of lanes side by side; 0: innermost */
    const char *text;     /* number beside the arrow, or NULL */
};

/* Draws an arrow in the class of its port, "p0" ...: a straight line to a neighbour, or an arc past the nodes that
 * only relay. An arrow that leaves its frame by a link that wraps continues at the opposite side. An arrow to another
 * plane is drawn at its start and at its end. */
void svg_arrow_draw(FILE *out, const struct svg_layout *l, const struct svg_arrow *a);

/* Returns the width of the widest line that leaves space between this many arcs side by side. */
double svg_arrow_widest(const struct svg_layout *l, uint32_t lanes);

/* Draws a band of class "crowd" along one channel. */
void svg_arrow_mark(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port);

/* Draws the links of a node: within its plane a line to the next node, and half a line at each side for a link that
 * wraps; in a network with factors that are neither rings nor lines, each link within a frame once. */
void svg_arrow_links(FILE *out, const struct svg_layout *l, uint32_t node);

/* Draws an arrow of this length in the direction of the port, for a legend. */
void svg_arrow_sample(FILE *out, const struct svg_layout *l, unsigned port, struct point centre,
                      double length, double width);
