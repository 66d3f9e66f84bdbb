/* Ranges of a stream that are moved, one behind the other. */
#pragma once

#include "daemon/torusd/copy/tree_store.h"

struct copy_spans {
    struct tree_span *span; /* rising, not touching, after copy_spans_join() */
    uint64_t *before;       /* bytes of the spans before each; set by copy_spans_join() */
    uint32_t count, room;
    uint64_t bytes; /* of all; set by copy_spans_join() */
};

/* Adds a span, which may overlap others. Returns 0, or -1 without memory. */
int copy_spans_add(struct copy_spans *s, struct tree_span span);
/* Sorts the spans, joins those that overlap or touch, and counts their bytes. Returns 0, or -1 without memory. */
int copy_spans_join(struct copy_spans *s);
/* The longest range of the stream, of at most `most` bytes, at a place in the sequence of all spans, which must be less
 * than s->bytes. */
struct tree_span copy_spans_at(const struct copy_spans *s, uint64_t place, uint64_t most);
void copy_spans_free(struct copy_spans *s);
