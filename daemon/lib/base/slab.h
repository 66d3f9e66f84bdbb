/* Pooled buffers with counted references. Bytes are read from a socket or file into a slab, and
 * stay there until the last write that uses them has finished: each user holds a reference.
 *
 * Not thread-safe: a pool belongs to one loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_SIZE (128u * 1024u)

/* Where the bytes of a slab are. */
enum slab_bytes {
    SLAB_IN_MEMORY,
    /* In a pipe (daemon/torusd/net/pipes.h). Addresses in the slab only tell their order, in which they leave once. */
    SLAB_IN_PIPE,
    /* In the memory of a program, where they belong: valid until the frame to which they belong has been taken. */
    SLAB_IN_PLACE,
};

struct slab {
    struct slab_pool *pool;         /* NULL: the slab is in no pool (slab_without_pool()) */
    struct slab *next;              /* in the pool's free list */
    void (*release)(void *context); /* of a lone slab */
    void *context;
    uint32_t references;
    enum slab_bytes where;
    /* bytes that extent_keep() has copied, so that they do not keep the slab */
    uint32_t copied_out;
    uint8_t data[SLAB_SIZE];
};

struct slab_pool {
    struct slab *free;
    size_t free_count;
    size_t free_most; /* free slabs beyond this number go back to the system */
    size_t in_use;    /* slabs with a reference */
};

/* Initialises a pool that keeps up to `keep_bytes` of free slabs for reuse. */
void slab_pool_init(struct slab_pool *pool, size_t keep_bytes);

/* Frees the free slabs. Returns how many slabs still have a reference (a leak, unless 0). */
size_t slab_pool_close(struct slab_pool *pool);

/* A slab with one reference, or NULL if there is no memory. */
struct slab *slab_get(struct slab_pool *pool);
/* Drops a reference. With the last one the slab returns to its pool, or is freed. */
void slab_unref(struct slab *slab);

/* A slab that is in no pool, with room for `size` bytes of its own, and one reference. Its extents may also
 * refer to bytes elsewhere: when the last reference is dropped, release(context), unless it is NULL, tells
 * the owner of those bytes. Returns NULL if there is no memory. */
struct slab *slab_without_pool(size_t size, void (*release)(void *context), void *context);

static inline struct slab *slab_ref(struct slab *slab)
{
    slab->references++;
    return slab;
}

/* Where bytes that arrive are to be put, in their order: runs of memory, each behind the one before. */
#define PLACES_MOST 64u
struct places {
    struct {
        uint8_t *data;
        uint32_t length;
    } run[PLACES_MOST];
    unsigned count;
};

/* Appends a run. Returns false if there are PLACES_MOST already. */
static inline bool places_add(struct places *p, uint8_t *data, uint32_t length)
{
    if (p->count == PLACES_MOST)
        return false;
    p->run[p->count].data = data;
    p->run[p->count++].length = length;
    return true;
}

/* A run of bytes inside a slab; holds a reference. */
struct extent {
    struct slab *slab;
    const uint8_t *data;
    uint32_t length;
};

/* A sequence of extents. Zero-initialise. */
struct extents {
    struct extent *item;
    uint32_t count, capacity;
};

/* Appends bytes of a slab, and takes a reference to the slab. Bytes that directly follow the
 * last extent are merged into it. Returns 0, or -1 if there is no memory. */
int extents_add(struct extents *x, struct slab *slab, const uint8_t *data, uint32_t length);

/* Drops the references, and keeps the allocated list. */
void extents_clear(struct extents *x);
/* Drops the references, and frees the list. */
void extents_free(struct extents *x);

/* A place inside a sequence of extents. Zero-initialise for its start. */
struct extent_cursor {
    uint32_t index, offset;
};

/* Takes the longest single run of at most `most` bytes at the cursor, which moves behind it. The
 * run borrows the sequence's reference. Returns its length, 0 at the end. */
uint32_t extents_take(const struct extents *x, struct extent_cursor *cursor, uint64_t most,
                      struct extent *piece);

/* A slab that is filled from the front, piece by piece. Zero-initialise; slab_writer_close(). */
struct slab_writer {
    struct slab *slab;
    uint32_t used;
};

/* Takes `length` (at most SLAB_SIZE) fresh bytes of a slab to write to; the extent gets a
 * reference of its own. Returns where to write, or NULL if there is no memory. */
uint8_t *slab_writer_take(struct slab_writer *w, struct slab_pool *pool, uint32_t length,
                          struct extent *out);
/* Drops the writer's reference to its slab. Extents stay valid. */
void slab_writer_close(struct slab_writer *w);

/* Appends a copy of `length` (at most SLAB_SIZE) bytes. Consecutive copies in the same slab form one extent.
 * Returns 0, or -1 if there is no memory. */
int extents_copy(struct extents *x, struct slab_writer *w, struct slab_pool *pool,
                 const uint8_t *data, uint32_t length);

/* Keeps received bytes that may wait for a long time: either by a reference to their slab, or as a copy.
 * Short runs are copied, up to SLAB_COPIED_MOST bytes per slab: otherwise a sender that makes a few bytes of
 * each slab wait would use many times their size in memory. Returns 0 with *out, whose reference the caller
 * drops, or -1 if there is no memory. */
#define SLAB_COPIED_MOST (SLAB_SIZE / 8)
int extent_keep(struct slab_writer *w, struct slab_pool *pool, const struct extent *in,
                struct extent *out);
