/* Paths in which %r stands for the rank of a node, and %% for a per cent sign. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

#define RANK_DIGITS 10u /* most digits of a rank */

/* Whether a path has a %r. */
bool ranked_path_has_rank(const char *path);
/* Checks that the path is absolute, and that each of its per cent signs is one of the two. Returns 0, or -1 with *e. */
int ranked_path_check(const char *path, struct error *e);
/* Writes a checked path for this rank to `out`, cut off if it has `size` bytes or more. Returns its length without the cut. */
size_t ranked_path_expand(const char *path, uint32_t rank, char *out, size_t size);
