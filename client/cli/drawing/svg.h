/* A picture of a schedule as SVG: a torus for each step, with an arrow for each combined message.
 * The same schedule always gives the same bytes. They need no script, style sheet or font of their
 * own, and follow a viewer's preference for a dark background. */
#ifndef TORUSD_CLI_SVG_H
#define TORUSD_CLI_SVG_H

#include <stdio.h>

#include "client/cli/drawing/drawing.h"
#include "daemon/schedule/verify.h"

/* Writes the whole document. Whether that worked is for the caller to ask of `out`. */
void svg_draw(FILE *out, struct drawing *d, const struct schedule_report *report);

#endif
