/* Draws a schedule as SVG: a torus for each step, with an arrow for each combined message. The same schedule always
 * gives the same bytes. The SVG needs no script, external style sheet or special font, and follows a viewer's
 * preference for a dark background. */
#pragma once

#include <stdio.h>

#include "client/cli/drawing/drawing.h"
#include "daemon/lib/schedule/verify.h"

/* Writes the whole document. The caller checks `out` for errors. */
void svg_draw(FILE *out, struct drawing *d, const struct schedule_report *report);
