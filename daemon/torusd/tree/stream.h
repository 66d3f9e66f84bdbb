/* The stream of a tree: finds the files of its bytes, and reads them. Places are remembered, each with a cursor and the file
 * that is open there, so that reading on costs no search. */
#pragma once

#include "daemon/torusd/tree/sources.h"

struct stream;
/* Both must outlive the stream. NULL: no memory. */
struct stream *stream_new(const struct manifest *manifest, const struct sources *sources);
void stream_free(struct stream *s);

/* Reads bytes. Several threads may do so at the same time; each needs AHEAD_FILES descriptors and one more. Returns 0, or
 * -1 with *e, which names the file. */
int stream_read(struct stream *s, uint64_t offset, uint8_t *bytes, size_t length, struct error *e);
