/* Draws counts over sizes as SVG, both on logarithmic axes: one or more panels side by side, with a line for each series
 * and a legend. The same counts always give the same bytes; no script, style sheet or font is needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct chart_point {
    double x, y; /* above 0; other points are not drawn */
};

struct chart_series {
    const char *name;
    bool is_bound; /* dashed and grey, and a bound in the legend */
    const struct chart_point *points;
    size_t count;
};

struct chart_panel {
    const char *title, *x_label;
    const struct chart_series *series;
    size_t count;
};

/* Writes the whole document. A series has the same colour in all panels, by its name; the legend names each once. The
 * caller checks `out` for errors. */
void chart_draw(FILE *out, const char *title, const struct chart_panel *panels, size_t count);
