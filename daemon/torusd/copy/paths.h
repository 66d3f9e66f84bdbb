/* Paths of copies, with %r for the rank of a node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/error.h"

#define COPY_PATH_MOST 4000u /* bytes, so that the path has room for ranks */

/* Checks a path: absolute, not too long, no '%' except %r and %%. `what` is "source" or "target". Sets *ranks to whether
 * it contains %r. Returns 0, or -1 with *e. */
int copy_path_check(const char *path, const char *what, bool *ranks, struct error *e);

/* Returns a checked path with `rank` for %r, and then, unless `below` is NULL, "/" and that rank. The caller frees it.
 * Returns NULL without memory. */
char *copy_path_expand(const char *path, uint32_t rank, const uint32_t *below);

/* Whether what is written below the folder `to`, as to/RANK, may be something that is read below the folder `from`, as
 * from/RANK. The paths are expanded. Returns 1, 0, or -1 without memory. */
int copy_paths_clash(const char *from, const char *to);
