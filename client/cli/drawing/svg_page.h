/* The page of a picture of a schedule: its measures, its notes, and the texts on it. */
#ifndef TORUSD_CLI_SVG_PAGE_H
#define TORUSD_CLI_SVG_PAGE_H

#include <stdio.h>

#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/svg_layout.h"
#include "daemon/schedule/verify.h"

enum {
    SVG_BORDER = 24,  /* around the page */
    SVG_BETWEEN = 26, /* steps */
    SVG_LINE = 17,    /* of text */
    SVG_MOST_NOTES = 8,
    SVG_PORT_ROOM = 52, /* of a port in the legend */
};

/* The page: its layout and what the heading has to say. */
struct svg_page {
    FILE *out;
    struct drawing *drawing;
    struct svg_layout layout;
    const struct schedule_report *report;
    char name[96], torus[TORUS_TEXT_SIZE]; /* fit for XML */
    char note[SVG_MOST_NOTES][160];
    unsigned notes;
    bool shaded;   /* nodes by their group */
    bool crowded;  /* some shown step is contended */
    double widest; /* arrow */
    int step_width, step_height, step_caption;
    uint32_t columns;
    int heading, width, height;
};

/* Measures the page of a drawing, which is borrowed, as the report is, and notes what the heading has to explain. */
struct svg_page svg_page_make(FILE *out, struct drawing *d, const struct schedule_report *report);

/* So many segments in blocks. */
double svg_page_blocks(const struct svg_page *p, uint64_t segments);

/* "4 blocks", "1 block". Returns `text`. */
char *svg_page_blocks_text(const struct svg_page *p, uint64_t segments, char *text, size_t size);

/* Draws a text, which must be fit for XML, in a class of the style sheet. */
void svg_page_text(const struct svg_page *p, const char *class, int x, int y, const char *text);

/* In pixels: of an arrow for so many segments. */
double svg_page_arrow_width(const struct svg_page *p, uint64_t segments);

#endif
