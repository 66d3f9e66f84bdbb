/* What the check of a manifest needs to know of a cursor. */
#pragma once

#include "daemon/torusd/tree/manifest.h"

/* Places in a manifest: of the index, and of the numbers that hard links lead to. */
uint64_t manifest_index_place(const struct manifest *m);
uint64_t manifest_links_place(const struct manifest *m);

/* Reads bytes of a manifest. Returns 0, or -1 with *e. */
int manifest_read_bytes(const struct manifest *m, void *bytes, size_t length, uint64_t offset,
                        struct error *e);

/* Place in the manifest behind the last entry that was read, and in the stream. */
uint64_t manifest_cursor_place(const struct manifest_cursor *c);
uint64_t manifest_cursor_begin(const struct manifest_cursor *c);
