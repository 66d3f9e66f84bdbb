/* Digests of all blocks of one side of a folder exchange, for the check that what was delivered is
 * what was sent. Each segment of a block is digested front to back as it passes, so that source and
 * sink need not agree in which pieces. */
#ifndef TORUSD_FILES_DIGESTS_H
#define TORUSD_FILES_DIGESTS_H

#include <xxhash.h>

#include "daemon/exchange/storage.h"

struct digests {
    uint32_t files, segments;
    uint64_t round_bytes, run_bytes;
    uint32_t copies;      /* of each block that are delivered */
    XXH3_state_t **state; /* [file * segments + segment]; NULL: there is no such block */
};

/* `sending`: the files are blocks from this node, else blocks to it. Returns 0, or -1 if there is
 * no memory; digests_free() is due in both cases. */
int digests_init(struct digests *d, const struct folder_request *request, bool sending,
                 uint64_t round_bytes, uint32_t segments);
void digests_free(struct digests *d);

/* Whether there is a block in this file. */
bool digests_has(const struct digests *d, uint32_t file);

/* The segment that a byte of a block belongs to. */
uint32_t digests_segment(const struct digests *d, uint64_t offset);

/* Takes in the next bytes of a segment. Returns 0, or -1. */
int digests_update(struct digests *d, uint32_t file, uint64_t offset, const void *data,
                   size_t length);

/* The sum over all blocks: sums of all sources and of all sinks are equal. */
uint64_t digests_sum(const struct digests *d);

#endif
