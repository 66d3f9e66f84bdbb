/* The options of torusctl plan that draw the schedule. */
#ifndef TORUSD_CLI_PLAN_PICTURE_H
#define TORUSD_CLI_PLAN_PICTURE_H

#include "client/cli/terminal/cli.h"
#include "daemon/schedule/verify.h"

/* As given; NULL = not given. */
struct picture_arguments {
    const char *file; /* "-" = standard output */
    const char *steps;
    const char *source;
    bool load;
};

/* Whether the picture takes the place of the command's own output. */
bool plan_picture_is_output(const struct picture_arguments *a);

/* The name of one of these options that was given, NULL if none was. */
const char *plan_picture_option(const struct picture_arguments *a);

/* Draws a verified schedule, if a file is given: what *node does, if it is not NULL, or what all
 * nodes do. Returns EXIT_DONE, or another exit code after having printed the reason; then there is
 * no new file. */
int plan_picture(const struct cli *cli, const struct picture_arguments *a, const struct torus *t,
                 const struct algorithm *algorithm, const struct schedule_report *report,
                 const uint32_t *node);

#endif
