/* Ranges of a stream that are moved, one behind the other. */
#ifndef TORUSD_COPY_SEQUENCE_H
#define TORUSD_COPY_SEQUENCE_H

#include "daemon/copy/tree_store.h"

struct span_sequence {
    struct tree_span *span; /* rising, not touching, after sequence_join() */
    uint64_t *before;       /* bytes of the spans before each; set by sequence_join() */
    uint32_t count, room;
    uint64_t bytes; /* of all; set by sequence_join() */
};

/* Adds a span, which may overlap others. Returns 0, or -1 without memory. */
int sequence_add(struct span_sequence *s, struct tree_span span);
/* Sorts the spans, joins those that overlap or touch, and counts their bytes. Returns 0, or -1 without memory. */
int sequence_join(struct span_sequence *s);
/* The longest range of the stream, of at most `most` bytes, at a place in the sequence of all spans, which must be less
 * than s->bytes. */
struct tree_span sequence_at(const struct span_sequence *s, uint64_t place, uint64_t most);
void sequence_free(struct span_sequence *s);

#endif
