/* Cuts files into chunks. */
#pragma once

#include "daemon/torusd/files/source/source_record.h"

/* Returns how the round that contains a byte of a file is cut. */
static inline struct segments chunks_cut_at(const struct folder_source *s, const struct file *f,
                                            uint64_t offset)
{
    uint64_t left = f->size - (offset - offset % s->segments.round_bytes);

    return s->base.even ? segments_of_rest(&s->segments, left) : s->segments;
}

/* Returns the most bytes that a chunk of this file has. */
static inline uint32_t chunks_most(const struct folder_source *s, const struct file *f)
{
    return f->small ? s->small : s->chunk_size;
}

/* Sets *place to the offset in the file of the byte at `offset` of the bytes that are not skipped. Returns
 * how many bytes follow it without a gap. */
uint64_t chunks_place_of(const struct folder_source *s, const struct file *f, uint64_t offset,
                         uint64_t *place);

/* Gives *c memory for the next chunk of a segment, at most `most` bytes. Returns 0, or -1 with *e. */
int chunks_take(struct folder_source *s, const struct file *f, struct reader *r, struct chunk *c,
                uint32_t most, struct error *e);

/* Drops the contents of a chunk. */
void chunks_drop(struct chunk *c);

/* Chooses the sizes of chunks, when the segments are known: small files get half of the memory for reading
 * ahead, and two chunks of each segment of the other files get the other half. */
void chunks_choose(struct folder_source *s);
