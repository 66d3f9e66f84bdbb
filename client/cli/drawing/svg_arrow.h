/* The arrows of a picture of a schedule. */
#ifndef TORUSD_CLI_SVG_ARROW_H
#define TORUSD_CLI_SVG_ARROW_H

#include <stdio.h>

#include "client/cli/drawing/svg_layout.h"
#include "daemon/schedule/algorithm.h"

struct svg_arrow {
    struct leg leg;
    uint32_t start;
    double width;  /* of the line */
    uint32_t lane; /* of arcs that lie beside each other, of this many, 0 the innermost */
    uint32_t lanes;
    const char *text; /* a number beside it, or NULL */
};

/* Draws an arrow in the class of its port, "p0" ...: a straight line to a neighbour, an arc past
 * the nodes that only relay. Where it leaves its frame by a link that wraps, it comes in again on
 * the opposite side. Where it leads to another plane it is drawn at its start and at its end. */
void svg_arrow_draw(FILE *out, const struct svg_layout *l, const struct svg_arrow *a);

/* The widest line that leaves space between this many arcs beside each other. */
double svg_arrow_widest(const struct svg_layout *l, uint32_t lanes);

/* Draws a band of class "crowd" along one channel. */
void svg_arrow_mark(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port);

/* Draws an arrow of this length that points in the port's direction, centred there: for a legend. */
void svg_arrow_sample(FILE *out, const struct svg_layout *l, unsigned port, struct point centre,
                      double length, double width);

#endif
