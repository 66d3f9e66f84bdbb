/* Draws the network that cables make (daemon/lib/cabling/cabling.h): as text for a terminal, and as SVG. */
#pragma once

#include <stdio.h>

#include "daemon/lib/cabling/cabling.h"

/* Draws the result. Up to 64 nodes in one or two dimensions of rings and lines are a grid that fits into 80 columns; if
 * the names are too long for that, the grid has ranks. Other networks, and grids of ranks, have a table with a line for
 * each port. The moves follow, numbered. */
void cabling_picture_draw(FILE *out, const struct cabling_result *r,
                          const struct cabling_input *in);

#define CABLING_SVG_NODES_MOST 1024u

/* Writes a document: hosts with their names, ranks and coordinates, links with the interfaces at their ends, and what is
 * wrong in red, with the moves below the picture; without a picture if the finding is CABLING_UNCLEAR. The caller checks `out` for
 * errors. The same result always gives the same bytes. */
void cabling_svg_draw(FILE *out, const struct cabling_result *r, const struct cabling_input *in);
