/* The page of a picture of a schedule: its measures, notes and texts. */
#pragma once

#include <stdio.h>

#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/svg_layout.h"
#include "daemon/lib/schedule/verify.h"

enum {
    SVG_BORDER = 24,  /* around the page */
    SVG_BETWEEN = 26, /* between steps */
    SVG_LINE = 17,    /* height of a line of text */
    SVG_MOST_NOTES = 8,
    SVG_PORT_ROOM = 52, /* width of a port in the legend */
};

/* The page: its layout, and the contents of the heading. */
struct svg_page {
    FILE *out;
    struct drawing *drawing;
    struct svg_layout layout;
    const struct schedule_report *report;
    char name[96], torus[TORUS_TEXT_SIZE]; /* as XML */
    char note[SVG_MOST_NOTES][160];
    unsigned notes;
    bool shaded;   /* nodes are shaded by group */
    bool crowded;  /* a shown step is contended */
    double widest; /* width of the widest arrow */
    int step_width, step_height, step_caption;
    uint32_t columns;
    int heading, width, height;
};

/* Measures the page of a drawing, and collects the notes of the heading. The drawing and the report belong to the
 * caller. */
struct svg_page svg_page_make(FILE *out, struct drawing *d, const struct schedule_report *report);

/* Converts a number of segments to blocks. */
double svg_page_blocks(const struct svg_page *p, uint64_t segments);

/* Writes "4 blocks" or "1 block" to `text`. Returns `text`. */
char *svg_page_blocks_text(const struct svg_page *p, uint64_t segments, char *text, size_t size);

/* Draws a text, which must be XML, in a class of the style sheet. */
void svg_page_text(const struct svg_page *p, const char *class, int x, int y, const char *text);

/* Returns the width in pixels of an arrow for so many segments. */
double svg_page_arrow_width(const struct svg_page *p, uint64_t segments);
