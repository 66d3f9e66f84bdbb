/* A set of bytes of a file or stream, as ranges that do not touch each other. */
#pragma once

#include <stdbool.h>

#include "daemon/torusd/copy/tree_store.h"

struct spans {
    struct tree_span *span; /* rising */
    size_t count, room;
};

/* Adds the bytes from `begin` up to `end`. Returns 0, or -1: no memory. */
int spans_add(struct spans *s, uint64_t begin, uint64_t end);
/* Whether all bytes from `begin` up to `end` are in the set. */
bool spans_contain(const struct spans *s, uint64_t begin, uint64_t end);
/* Number of bytes in the set. */
uint64_t spans_bytes(const struct spans *s);
/* Returns the first byte at or behind `from` that is not in the set, and sets *until to the end of this gap, at most
 * `end`; returns `end` if there is none. */
uint64_t spans_gap(const struct spans *s, uint64_t from, uint64_t end, uint64_t *until);
/* Joins ranges until at most `most` (at least 1) remain, those with the least between them first. Returns 0, or -1:
 * no memory. */
int spans_join(struct spans *s, size_t most);
void spans_free(struct spans *s);
