/* How files are cut into chunks. */
#ifndef TORUSD_FILES_SOURCE_CHUNKS_H
#define TORUSD_FILES_SOURCE_CHUNKS_H

#include "daemon/files/source/source_record.h"

/* How the round that a byte of a file is in is cut. */
static inline struct segments chunks_cut_at(const struct folder_source *s, const struct file *f,
                                            uint64_t offset)
{
    uint64_t left = f->size - (offset - offset % s->segments.round_bytes);

    return s->base.even ? segments_of_rest(&s->segments, left) : s->segments;
}

/* The most bytes of a chunk of this file. */
static inline uint32_t chunks_most(const struct folder_source *s, const struct file *f)
{
    return f->small ? s->small : s->chunk_size;
}

/* Where the byte at `offset` of what is to be read lies in its file. Returns how many follow it there. */
uint64_t chunks_place_of(const struct folder_source *s, const struct file *f, uint64_t offset,
                         uint64_t *place);

/* Room for the next chunk of a segment, of so many bytes at most. Returns 0, or -1 with *e. */
int chunks_take(struct folder_source *s, const struct file *f, struct reader *r, struct chunk *c,
                uint32_t most, struct error *e);

/* What a chunk holds is not needed any more. */
void chunks_drop(struct chunk *c);

/* Chooses the sizes of chunks, once the segments are known: half of what is read ahead is for small files, and half
 * for two chunks of each segment of the others. */
void chunks_choose(struct folder_source *s);

#endif
