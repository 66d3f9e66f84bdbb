/* Paths of copies, as people write them. */
#pragma once

#include <stdbool.h>

#include "proto/error.h"

/* Makes a path absolute, from the working directory, without "." and without slashes at its end. Does not follow
 * symbolic links, so that a link stays what is copied. `literal`: every per cent sign in `text` stands for itself;
 * otherwise the daemon replaces %r in it. Returns 0 with *path, which the caller frees, or -1 with *e. */
int copy_path_absolute(const char *text, bool literal, char **path, struct error *e);

/* Returns whether a path has a %r, which stands for a rank. */
bool copy_path_has_rank(const char *path);

/* Returns the last name of an absolute path. */
const char *copy_path_name(const char *path);
