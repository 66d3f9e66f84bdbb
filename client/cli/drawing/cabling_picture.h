/* Draws the network that cables make (daemon/lib/cabling/cabling.h) as text for a terminal. */
#pragma once

#include <stdio.h>

#include "daemon/lib/cabling/cabling.h"

/* How a link is. */
enum cabling_link {
    CABLING_LINK_GOOD,
    CABLING_LINK_ONE_WAY, /* its cable has to be replaced */
    CABLING_LINK_TO_MAKE  /* no cable makes it now */
};

/* The link at a port where the torus has one. */
enum cabling_link cabling_link_at(const struct cabling_result *r, uint32_t rank, unsigned port);

/* Copies the name of the host of a rank, printable and cut; "(missing)" if there is none. Returns `text`. */
char *cabling_host_name(const struct cabling_result *r, const struct cabling_input *in,
                        uint32_t rank, char *text, size_t size);

/* Draws the result. Up to 64 nodes in one or two dimensions of rings and lines are a grid that fits into 80 columns; if
 * the names are too long for that, the grid has ranks. Other networks, and grids of ranks, have a table with a line for
 * each port. The moves follow, numbered. */
void cabling_picture_draw(FILE *out, const struct cabling_result *r,
                          const struct cabling_input *in);
