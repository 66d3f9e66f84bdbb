/* Makes TREE_DIGESTS for a reader. */
#pragma once

#include "daemon/torusd/tree/digests.h"
#include "daemon/torusd/tree/reader_sources.h"

/* Which files are wanted: answers of compare(), which may contain anything. What is no file is ignored. */
struct wanted_answers {
    const uint8_t *const *bytes;
    const size_t *length;
    uint32_t count;
    bool sizes; /* tree_read_options.sizes */
};

/* Cuts these files into chunks, and writes the document to an open, empty file. Returns 0 with its size, or -1 with *e. */
int reader_digests_make(const struct manifest *manifest, const struct sources *sources,
                        const struct wanted_answers *answers, bool fast,
                        struct tree_progress *progress, int file, uint64_t *size, struct error *e);
