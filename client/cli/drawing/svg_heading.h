/* The heading of a picture of a schedule: title, figures, notes and a legend. */
#pragma once

#include "client/cli/drawing/svg_page.h"

/* Draws the heading at the top of the page. */
void svg_heading_draw(const struct svg_page *p);
