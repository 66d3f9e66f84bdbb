/* Opens the next files of a stream before they are read, and tells the kernel to load them: small files on a disk are so
 * loaded several at a time. */
#pragma once

#include "daemon/torusd/tree/reader_sources.h"

#define AHEAD_FILES 16u

struct ahead;
struct ahead *ahead_new(const struct manifest *manifest,
                        const struct sources *sources); /* NULL: no memory */
void ahead_free(struct ahead *a);

/* Opens files from the one that begins at `offset` of the stream on, up to `limit`, or until AHEAD_FILES are open. Returns
 * 0, or -1 with *e. */
int ahead_open(struct ahead *a, uint64_t offset, uint64_t limit, struct error *e);
/* Takes the file of an entry, which the caller closes; -1 if it is not open. */
int ahead_take(struct ahead *a, uint64_t index);
/* Closes all files. */
void ahead_close(struct ahead *a);
