/* Draws the network that cables make (daemon/cabling/cabling.h) as SVG: hosts with their names, ranks and coordinates,
 * links with the interfaces at their ends, and what is wrong in red, with the moves below the picture. */
#ifndef TORUSD_CLI_CABLING_SVG_H
#define TORUSD_CLI_CABLING_SVG_H

#include <stdio.h>

#include "daemon/cabling/cabling.h"

#define CABLING_SVG_NODES_MOST 1024u

/* Writes the whole document; without a picture if the finding is CABLING_UNCLEAR. The caller checks `out` for
 * errors. The same result always gives the same bytes. */
void cabling_svg_draw(FILE *out, const struct cabling_result *r, const struct cabling_input *in);

#endif
