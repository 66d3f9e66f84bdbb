/* Which names a copy leaves out: patterns like those of rsync's --exclude and --include.
 *
 *   - The first pattern that matches decides. A name that no pattern matches is kept; the contents of a folder that is
 *     left out are not looked at.
 *   - A pattern without a '/' (except at its end) and without "**" matches a name; another pattern matches the end of a
 *     path, from the beginning of any name on. A '/' at its beginning lets it match whole paths only.
 *   - A '/' at its end lets it match folders only. "NAME/" followed by "***" matches a folder and all that it holds.
 *   - '*' matches any bytes except '/', "**" any bytes, '?' one byte except '/', "[...]" one byte of a set except '/':
 *     ranges ("a-z"), classes ("[:digit:]"), and with '!' or '^' first any byte that is not in the set. "**" and '/' at the
 *     beginning of a pattern match the beginning of a path, too.
 *   - A pattern with a '/' in a set is compared with paths, and matches one only if it begins with '/' or has "**".
 *   - '\' takes the special meaning of the next byte, in patterns that contain '*', '?' or '['; in others it stands for
 *     itself.
 *
 * The time for a match is at most proportional to the length of the pattern times that of the path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct patterns;

/* Reads patterns "- PATTERN" (leave out) and "+ PATTERN" (keep). Returns NULL with *e: no memory, or a text is not a
 * pattern (ERROR_USAGE). */
struct patterns *patterns_new(const char *const *text, uint32_t count, struct error *e);
void patterns_free(struct patterns *p); /* NULL is allowed */

/* Whether a file, or a folder with all that it holds, is left out. The path is relative to the top of the copied tree:
 * it begins with the name of a source if sources keep their names. "" is never left out. */
bool patterns_leave_out(const struct patterns *p, const char *path, bool folder);
