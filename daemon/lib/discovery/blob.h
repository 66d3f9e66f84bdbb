/* Bytes that arrive in chunks, in any order, some of them not at all until they are asked for again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOB_CHUNK 896u /* bytes: a packet with a chunk is not fragmented */
#define BLOB_MOST (256u * 1024u + 1024u)
#define BLOB_CHUNKS_MOST ((BLOB_MOST + BLOB_CHUNK - 1) / BLOB_CHUNK)
#define BLOB_WINDOW 32u /* chunks that are asked for at once */
#define BLOB_FIRST 16u  /* chunks that are sent before they are asked for */

/* Zero-initialise. */
struct blob {
    uint8_t *bytes;
    size_t size;
    uint32_t chunks, missing;
    uint32_t awaited; /* asked for, and not there yet */
    bool have[BLOB_CHUNKS_MOST];
};

/* How many chunks so many bytes make. */
static inline uint32_t blob_chunks(size_t size)
{
    return (uint32_t)((size + BLOB_CHUNK - 1) / BLOB_CHUNK);
}

/* Returns the length of a chunk. */
static inline size_t blob_chunk_size(size_t size, uint32_t index)
{
    size_t begin = (size_t)index * BLOB_CHUNK;

    return size - begin < BLOB_CHUNK ? size - begin : BLOB_CHUNK;
}

/* Adds a chunk of a blob of `size` bytes, at most `most`. Chunks that do not fit are ignored. */
void blob_add(struct blob *b, size_t size, size_t most, uint32_t index, const uint8_t *bytes,
              size_t length);
/* Whether all bytes are there. */
bool blob_is_whole(const struct blob *b);
/* Lists up to BLOB_WINDOW missing chunks, and counts them as awaited. Returns their number. */
uint32_t blob_ask(struct blob *b, uint32_t list[BLOB_WINDOW]);
/* Frees the bytes; *b can be used again. */
void blob_free(struct blob *b);
