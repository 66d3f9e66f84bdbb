/* The heading of a picture of a schedule: title, figures, notes and a legend. */
#ifndef TORUSD_CLI_SVG_HEADING_H
#define TORUSD_CLI_SVG_HEADING_H

#include "client/cli/drawing/svg_page.h"

/* Draws the heading at the top of the page. */
void svg_heading_draw(const struct svg_page *p);

#endif
