/* Draws the network that cables make (daemon/lib/cabling/cabling.h) as SVG: hosts with their names, ranks and coordinates,
 * links with the interfaces at their ends, and what is wrong in red, with the moves below the picture. */
#pragma once

#include <stdio.h>

#include "daemon/lib/cabling/cabling.h"

#define CABLING_SVG_NODES_MOST 1024u

/* Writes the whole document; without a picture if the finding is CABLING_UNCLEAR. The caller checks `out` for
 * errors. The same result always gives the same bytes. */
void cabling_svg_draw(FILE *out, const struct cabling_result *r, const struct cabling_input *in);
