/* The patterns of a copy, from the command line and from files. */
#pragma once

#include <torus/torus.h>

#include "daemon/lib/command_line/options.h"

struct copy_patterns {
    size_t count;
    char *pattern[TORUS_COPY_LIST_MAX]; /* "- PATTERN" or "+ PATTERN" */
};

/* Collects the patterns of --exclude, --include and --exclude-from in their order. In a file, empty lines and lines
 * that begin with '#' or ';' have no meaning, and "+ PATTERN" keeps names. Returns 0, or -1 with *e. In either case the
 * caller gives *p to copy_patterns_free(). */
int copy_patterns_read(struct copy_patterns *p, const struct option_list *list, struct error *e);
void copy_patterns_free(struct copy_patterns *p);
