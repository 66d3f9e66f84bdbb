/* What the two sides of a copy tell each other about large files that have changed, so that only changed chunks move:
 *
 *   - `wanted`, the answer of compare(): numbers of entries, for which the writer has an older version; if both sides know
 *     that (tree_read_options.sizes), each with the size of a shorter version, or 0: a chunk then ends there, so that the
 *     writer sees whether the file has only grown.
 *   - The document TREE_DIGESTS: for each of these files (those that any writer wants), the chunks of its data
 *     (chunks.h). A chunk at place p of a file's data is at entry.begin + p of the stream.
 *
 * A wanted number is stored as the difference to the number before plus one (the first: as it is), in groups of 7 bits,
 * lowest first, each in a byte whose highest bit says that another byte follows.
 *
 * The document, with little-endian numbers:
 *
 *     head       8 bytes "TORUSDIG", u32 version, u32 0; version 1: digests of chunks are BLAKE2b; 2: they are XXH3, and
 *                a u64 follows, the seed
 *     each file  u64 number of its entry (ascending); for each chunk u32 length, 16 bytes digest; u32 0
 *     end        u64 2^64 - 1, 16 bytes digest (BLAKE2b of everything before)
 *

 *

 *

 *
 */
#pragma once

#include "daemon/torusd/tree/chunks.h"

/* Smaller files are not worth it: a writer should not want their digests. */
#define DIGESTS_FILE_LEAST (2u * CHUNK_MOST)

/* --- wanted: written by a writer, read by a reader --- */

struct wanted {
    uint8_t bytes[TREE_WANTED_MOST];
    size_t length;
    uint64_t next; /* the least number that can be added; 0 at first */
    bool sizes;
};

/* Adds the number of an entry; numbers must rise. Returns false if there is no room: then it is not wanted. */
bool wanted_add(struct wanted *w, uint64_t index, uint64_t size);

/* Reads numbers of any bytes. Returns whether there is a next number, which is larger than the ones before. */
struct wanted_numbers {
    const uint8_t *bytes;
    size_t left;
    uint64_t next; /* 0 at first */
    bool sizes;
};
bool wanted_next(struct wanted_numbers *n, uint64_t *index, uint64_t *size);

/* --- the document: written by a reader --- */

struct digests_maker;
/* Makes the document in an open, empty file, which the caller keeps open and closes. Returns NULL with *e. */
struct digests_maker *digests_maker_new(int file, const struct chunk_digests *how, struct error *e);
void digests_maker_free(struct digests_maker *m);
/* Begins the next file; adds a chunk to it. */
int digests_maker_file(struct digests_maker *m, uint64_t index, struct error *e);
int digests_maker_chunk(struct digests_maker *m, const struct chunk *chunk, struct error *e);
/* Completes the document. Returns 0 with its size in bytes. */
int digests_maker_finish(struct digests_maker *m, uint64_t *size, struct error *e);

/* --- the document: read by a writer --- */

/* Checks a document of `size` bytes in a file, which may contain anything: all of it, and that each file is an
 * ENTRY_FILE of the manifest, and its chunks are as long as its data. At most `shorts` chunks of a file before its last
 * one may be shorter than CHUNK_LEAST (DIGESTS_SHORTS_MOST if chunks end where shorter versions do). Returns 0, or -1
 * with *e (ERROR_PROTOCOL; ERROR_IO; ERROR_MEMORY). */
#define DIGESTS_SHORTS_MOST 1024u
int digests_check(int file, uint64_t size, const struct manifest *manifest, uint32_t shorts,
                  struct error *e);

/* Reads a document that has been checked. */
struct digests_cursor;
struct digests_cursor *digests_cursor_new(int file, uint64_t size); /* NULL: no memory */
void digests_cursor_free(struct digests_cursor *c);
/* How the digests of its chunks are made. */
struct chunk_digests digests_how(const struct digests_cursor *c);
/* Returns 1 with the number of the entry of the next file, and passes over chunks that were not read; 0: there is none;
 * -1 with *e. */
int digests_next_file(struct digests_cursor *c, uint64_t *index, struct error *e);
/* Returns 1 with the next chunk of that file; 0: there is none; -1 with *e. */
int digests_next_chunk(struct digests_cursor *c, struct chunk *chunk, struct error *e);
