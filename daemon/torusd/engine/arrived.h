/* Records which bytes of blocks have arrived, as spans. The source and the destination of a block both know
 * its spans, so a retry sends only the missing bytes. No I/O. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the block from (or for) a node: from `begin` up to, but without, `end`. */
struct span {
    uint32_t node;
    uint64_t begin, end;
};

/* Spans in the order of nodes and places; spans of a node do not touch each other. Zero-initialise for
 * none. */
struct arrived {
    struct span *span;
    uint32_t count;
    size_t room;
};

void arrived_free(struct arrived *a); /* afterwards *a has no spans */

/* Adds a span, in any order; ignores an empty one. Call arrived_settle() before the functions below.
 * Returns 0, or -1 if there is no memory. */
int arrived_add(struct arrived *a, uint32_t node, uint64_t begin, uint64_t end);
/* Sorts the spans, and joins spans that touch or overlap. */
void arrived_settle(struct arrived *a);

/* Forgets spans until each node's block has at most `most` of them. */
void arrived_trim(struct arrived *a, uint32_t most);

/* Returns how many bytes of a node's block have arrived, and where the last span of the block ends; 0:
 * there is none. */
uint64_t arrived_bytes(const struct arrived *a, uint32_t node);
uint64_t arrived_end(const struct arrived *a, uint32_t node);

/* Forgets all spans of a node's block. */
void arrived_drop(struct arrived *a, uint32_t node);

/* Finds the missing byte number `at` of a block of `size` bytes: sets *begin to its offset in the block,
 * and returns how many bytes are missing from there without a gap. Returns 0 if not so many bytes are
 * missing. */
uint64_t arrived_missing(const struct arrived *a, uint32_t node, uint64_t size, uint64_t at,
                         uint64_t *begin);
