/* Pictures of a recognised network: as text, and as SVG. */
#ifndef TORUSD_CLI_PICTURE_H
#define TORUSD_CLI_PICTURE_H

#include <stdio.h>

#include "client/cli/recognising/recognised.h"

/* Whether picture_text() can draw the network: it is clear, a product of rings and lines, and not too large. */
bool picture_text_is_possible(const struct recognised *r);

/* Draws the hosts and links of the network, each plane of its last two dimensions by itself. */
void picture_text(FILE *out, const struct recognised *r);

/* Draws the hosts, and the cables as they are plugged, with the names of their interfaces. Wrong cables are red.
 * Returns 0, or -1 with *e: the file cannot be written. */
int picture_svg(const struct recognised *r, const char *path, struct error *e);

#endif
