/* Pooled, counted buffers. Bytes are read from a socket or file into a slab and stay there until
 * the last write that takes them on has finished: whoever needs them holds a reference.
 *
 * Not thread-safe: a pool belongs to one loop. */
#ifndef TORUSD_BASE_SLAB_H
#define TORUSD_BASE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_SIZE (128u * 1024u)

struct slab {
    struct slab_pool *pool;         /* NULL: of nobody's pool (slab_lone()) */
    struct slab *next;              /* in the pool's free list */
    void (*release)(void *context); /* a lone one's */
    void *context;
    uint32_t references;
    uint32_t spared; /* bytes of it that were copied so as not to keep it (extent_keep()) */
    uint8_t data[SLAB_SIZE];
};

struct slab_pool {
    struct slab *free;
    size_t free_count;
    size_t free_most; /* more than that go back to the system */
    size_t in_use;    /* slabs with a reference */
};

/* Keeps up to `keep_bytes` of free slabs for reuse. */
void slab_pool_init(struct slab_pool *pool, size_t keep_bytes);

/* Frees the free slabs. Returns how many are still referenced (a leak, unless 0). */
size_t slab_pool_close(struct slab_pool *pool);

/* A slab with one reference, or NULL if there is no memory. */
struct slab *slab_get(struct slab_pool *pool);
void slab_unref(struct slab *slab);

/* One that comes from no pool, with room for `size` bytes of its own, and one reference. Extents of it
 * may also refer to bytes elsewhere, whose owner is told when the last reference has gone: then
 * release(context) is called, unless it is NULL. Returns NULL if there is no memory. */
struct slab *slab_lone(size_t size, void (*release)(void *context), void *context);

static inline struct slab *slab_ref(struct slab *slab)
{
    slab->references++;
    return slab;
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

/* Appends bytes of a slab with a reference of its own; what follows the last extent directly is
 * merged into it. Returns 0, or -1 if there is no memory. */
int extents_add(struct extents *x, struct slab *slab, const uint8_t *data, uint32_t length);

/* Drops the references, keeps the room. */
void extents_clear(struct extents *x);
void extents_free(struct extents *x);

/* A place inside a sequence of extents. Zero-initialise for its start. */
struct extent_cursor {
    uint32_t index, offset;
};

/* The longest single run of at most `most` bytes at the cursor, which moves behind it. The piece
 * borrows the sequence's reference. Returns its length, 0 at the end. */
uint32_t extents_take(const struct extents *x, struct extent_cursor *cursor, uint64_t most,
                      struct extent *piece);

/* A slab that is filled from the front, piece by piece. Zero-initialise; slab_writer_close(). */
struct slab_writer {
    struct slab *slab;
    uint32_t used;
};

/* `length` (at most SLAB_SIZE) fresh bytes to write to; the extent holds a reference of its own.
 * Returns where to write, or NULL if there is no memory. */
uint8_t *slab_writer_take(struct slab_writer *w, struct slab_pool *pool, uint32_t length,
                          struct extent *out);
void slab_writer_close(struct slab_writer *w);

/* Appends a copy of `length` (at most SLAB_SIZE) bytes, which the writer makes. Copies that follow
 * each other are one extent, as long as a slab lasts. Returns 0, or -1 if there is no memory. */
int extents_copy(struct extents *x, struct slab_writer *w, struct slab_pool *pool,
                 const uint8_t *data, uint32_t length);

/* What has come in and may wait for long: in the slab that it came in, with a reference, or copied. The first
 * SLAB_SPARED bytes of a slab that are short runs are copied: else who lets few bytes wait of each slab that it
 * fills would make them take many times their size. Returns 0 with *out, whose reference the caller drops, or
 * -1 if there is no memory. */
#define SLAB_SPARED (SLAB_SIZE / 8)
int extent_keep(struct slab_writer *w, struct slab_pool *pool, const struct extent *in,
                struct extent *out);

#endif
