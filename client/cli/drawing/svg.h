/* Draws a schedule as SVG: a torus for each step, with an arrow for each combined message. The same schedule always
 * gives the same bytes. The SVG needs no script, external style sheet or special font, and follows a viewer's
 * preference for a dark background. */
#pragma once

#include <stdio.h>

#include "client/cli/drawing/drawing.h"
#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/verify.h"

/* Writes the whole document. The caller checks `out` for errors. */
void svg_draw(FILE *out, struct drawing *d, const struct schedule_report *report);

/* Copies a text as XML, cut to what fits. */
void svg_escape(char *out, size_t size, const char *text);

/* The options of torusctl plan that draw the schedule. */

/* The options as the user has given them; NULL: not given. */
struct picture_arguments {
    const char *file; /* "-": standard output */
    const char *steps;
    const char *source;
    bool load;
};

/* Returns whether the picture replaces the output of the command. */
bool plan_picture_is_output(const struct picture_arguments *a);

/* Returns the name of one of these options that was given, or NULL if none was. */
const char *plan_picture_option(const struct picture_arguments *a);

/* Draws a verified schedule, if a file was given: only the messages of *node, unless `node` is NULL. In a picture of the
 * load, channels of lower rates (NULL: those for which the routes were found) are thicker and named. Returns
 * EXIT_DONE, or another exit code after printing the reason, without a new file. */
int plan_picture(const struct cli *cli, const struct picture_arguments *a, const struct torus *t,
                 const struct algorithm *algorithm, const struct damage *rates,
                 const struct schedule_report *report, const uint32_t *node);
