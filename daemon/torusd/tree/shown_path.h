/* Paths in errors. */
#pragma once

#define SHOWN_PATH 200 /* room for a path, with its end */

struct shown_path {
    char text[SHOWN_PATH];
};

/* Makes a path printable: `above`, and a path below it unless that is "". Of one that is too long the end is shown. The
 * result lives as long as *out. */
const char *show_path(struct shown_path *out, const char *above, const char *below);
