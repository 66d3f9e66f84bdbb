/* Matches one pattern of patterns.h against one text. */
#pragma once

#include <stdbool.h>

struct glob;

/* Whether a pattern has special bytes; otherwise it matches itself only. */
bool glob_is_needed(const char *pattern);
struct glob *glob_new(const char *pattern); /* NULL: no memory */
void glob_free(struct glob *g);
/* Whether a set has a '/', which sets do not match. */
bool glob_has_slash_in_set(const struct glob *g);

/* Where a match may begin; it always reaches to the end of the text. */
enum glob_start {
    GLOB_AT_START,
    GLOB_AT_NAMES, /* at the start, and behind each '/' */
    GLOB_AT_SLASH, /* at the start, or at a '/' that is thought before it */
};

/* Whether the pattern matches the text, or the text with a '/' behind it (`slash_behind`). The text has at most
 * MANIFEST_PATH_MOST bytes. */
bool glob_matches(const struct glob *g, const char *text, enum glob_start start, bool slash_behind);
