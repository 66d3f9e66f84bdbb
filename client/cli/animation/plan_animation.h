/* The options of torusctl plan that make a page. */
#pragma once

#include "client/cli/animation/animation.h"

/* The options as the user has given them; NULL: not given. */
struct animation_arguments {
    const char *file; /* "-": standard output */
    const char *compare;
    const char *trace;
};

/* Whether the page replaces the output of the command. */
bool plan_animation_is_output(const struct animation_arguments *a);

/* Writes the page of a verified schedule, if a file was given, beside that of --compare; `source` is the argument of
 * --source, or NULL. Returns EXIT_DONE, or another exit code after printing the reason. */
int plan_animation(const struct cli *cli, const struct animation_arguments *a, const char *source,
                   const struct torus *t, const struct animated *schedule);
