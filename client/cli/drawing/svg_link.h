/* The links and arrows of a network with factors that are neither rings nor lines. A link is a line between two nodes
 * of a frame, bent if it would cross a third node; a link that leaves the frame is a short line at both ends, with
 * the number of the node at the other end. */
#pragma once

#include "client/cli/drawing/svg_arrow.h"

/* Draws the links of a node, each link within a frame once. */
void svg_link_draw(FILE *out, const struct svg_layout *l, uint32_t node);

/* As svg_arrow_draw() and svg_arrow_mark(). */
void svg_link_arrow(FILE *out, const struct svg_layout *l, const struct svg_arrow *a);
void svg_link_mark(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port);
