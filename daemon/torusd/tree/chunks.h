/* Cuts data into chunks at places that depend only on the data around them: if bytes are inserted or removed, the
 * chunks after them stay the same. Both sides of a copy must cut in the same way, so the constants and chunks.c may not
 * change without a new version of TREE_DIGESTS (digests.h). */
#pragma once

#include "daemon/torusd/tree/file_data.h"

#define CHUNK_LEAST (16u * 1024) /* bytes; the last chunk of a file may have fewer */
#define CHUNK_MEAN (64u * 1024)
#define CHUNK_MOST (256u * 1024)

/* How digests of chunks are made: BLAKE2b, or, if all nodes know it, XXH3 with a new seed in each document, so that
 * nobody who made the files beforehand knows the seed. */
struct chunk_digests {
    bool fast;
    uint64_t seed; /* if fast */
};

struct chunk {
    uint32_t length;
    uint8_t digest[FILE_DIGEST];
};

/* The digest of a chunk with these bytes. */
void chunk_digest(const struct chunk_digests *how, const uint8_t *bytes, size_t length,
                  uint8_t digest[FILE_DIGEST]);

/* --- bytes as they come --- */

struct cutter;
struct cutter *cutter_new(const struct chunk_digests *how); /* NULL: no memory */
void cutter_free(struct cutter *c);
/* Takes bytes until a chunk ends. Returns how many it took (all, unless a chunk has ended); *ended says whether *chunk
 * is set. */
size_t cutter_feed(struct cutter *c, const uint8_t *bytes, size_t length, struct chunk *chunk,
                   bool *ended);
/* To be called at the end of the data: returns whether there is a last *chunk. The cutter can then be used again. */
bool cutter_end(struct cutter *c, struct chunk *chunk);

/* --- files --- */

/* Calls found() for each chunk of a file's data, in order, with the place where it begins. found() returns 0, or -1
 * with errno: then this function returns -1. Errors are those of file_data.h, and ENOMEM. */
int chunks_of_file(int file, struct file_data *d, const struct chunk_digests *how,
                   struct tree_progress *progress,
                   int (*found)(void *context, uint64_t place, const struct chunk *chunk),
                   void *context);
/* The same for the data from `begin` up to `end`, at which the last chunk ends. */
int chunks_of_range(int file, struct file_data *d, const struct chunk_digests *how, uint64_t begin,
                    uint64_t end, struct tree_progress *progress,
                    int (*found)(void *context, uint64_t place, const struct chunk *chunk),
                    void *context);
