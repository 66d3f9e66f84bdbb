/* A set of bytes of a file, block or stream, as intervals that do not touch each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From `begin` to `end`; `end` itself is not included. */
struct interval {
    uint64_t begin, end;
};

/* Zero-initialise for the empty set. */
struct intervals {
    struct interval *item; /* rising */
    size_t count, room;
    uint64_t bytes; /* in the set */
};

/* Adds the bytes from `begin` up to `end`, of which some may be in the set. Returns 0, or -1: no memory. */
int intervals_add(struct intervals *s, uint64_t begin, uint64_t end);
/* Whether all bytes from `begin` up to `end` are in the set. */
bool intervals_contain(const struct intervals *s, uint64_t begin, uint64_t end);
/* Returns the first byte at or behind `from` that is not in the set, and sets *until to the end of this gap, at most
 * `end`; returns `end` if there is none. */
uint64_t intervals_gap(const struct intervals *s, uint64_t from, uint64_t end, uint64_t *until);
/* Finds byte number `at` of those below `size` that are not in the set: sets *begin to it, and returns how many bytes
 * are missing from there without a break. Returns 0 if not that many bytes are missing. */
uint64_t intervals_missing(const struct intervals *s, uint64_t size, uint64_t at, uint64_t *begin);
/* Joins intervals until at most `most` (at least 1) remain, those with the least between them first. Returns 0, or -1:
 * no memory. */
int intervals_join(struct intervals *s, size_t most);
/* Removes the last intervals until at most `most` remain. */
void intervals_cut(struct intervals *s, size_t most);
/* Frees the set, which is then empty. */
void intervals_free(struct intervals *s);

/* A walk through the bytes of the set, in order. */
struct interval_walk {
    size_t index;
    uint64_t taken; /* bytes of this interval */
};

/* Begins at byte number `place` of the set, which must be less than s->bytes. */
struct interval_walk intervals_walk(const struct intervals *s, uint64_t place);
/* Returns the next bytes, at most `most`, and moves behind them; an empty interval at the end of the set. */
struct interval intervals_next(const struct intervals *s, struct interval_walk *walk,
                               uint64_t most);
