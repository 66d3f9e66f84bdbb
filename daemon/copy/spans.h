/* Ranges of a stream that are moved, one behind the other. */
#ifndef TORUSD_COPY_SPANS_H
#define TORUSD_COPY_SPANS_H

#include "daemon/copy/tree_store.h"

struct spans {
    struct tree_span *span; /* rising, not touching, after spans_join() */
    uint64_t *before;       /* bytes of the spans before each; set by spans_join() */
    uint32_t count, room;
    uint64_t bytes; /* of all; set by spans_join() */
};

/* Adds a span, which may overlap others. Returns 0, or -1 without memory. */
int spans_add(struct spans *s, struct tree_span span);
/* Sorts the spans, joins those that overlap or touch, and counts their bytes. Returns 0, or -1 without memory. */
int spans_join(struct spans *s);
/* The longest range of the stream, of at most `most` bytes, at a place in the sequence of all spans, which must be less
 * than s->bytes. */
struct tree_span spans_at(const struct spans *s, uint64_t place, uint64_t most);
void spans_free(struct spans *s);

#endif
