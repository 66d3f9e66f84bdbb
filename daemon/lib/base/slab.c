#include "daemon/lib/base/slab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void slab_pool_init(struct slab_pool *pool, size_t keep_bytes)
{
    *pool = (struct slab_pool){.free_most = keep_bytes / SLAB_SIZE};
}

size_t slab_pool_close(struct slab_pool *pool)
{
    while (pool->free != NULL) {
        struct slab *slab = pool->free;
        pool->free = slab->next;
        free(slab);
    }
    pool->free_count = 0;
    return pool->in_use;
}

struct slab *slab_get(struct slab_pool *pool)
{
    struct slab *slab = pool->free;
    if (slab != NULL) {
        pool->free = slab->next;
        pool->free_count--;
    } else {
        slab = malloc(sizeof *slab);
        if (slab == NULL)
            return NULL;
        slab->pool = pool;
        slab->release = NULL;
        slab->where = SLAB_IN_MEMORY;
    }
    slab->next = NULL;
    slab->references = 1;
    slab->copied_out = 0;
    pool->in_use++;
    return slab;
}

struct slab *slab_without_pool(size_t size, void (*release)(void *context), void *context)
{
    struct slab *slab = malloc(offsetof(struct slab, data) + size);

    if (slab == NULL)
        return NULL;
    slab->pool = NULL;
    slab->next = NULL;
    slab->release = release;
    slab->where = SLAB_IN_MEMORY;
    slab->context = context;
    slab->references = 1;
    return slab;
}

void slab_unref(struct slab *slab)
{
    struct slab_pool *pool = slab->pool;

    assert(slab->references > 0);
    if (--slab->references > 0)
        return;
    if (pool == NULL) {
        if (slab->release != NULL)
            slab->release(slab->context);
        free(slab);
        return;
    }
    pool->in_use--;
    if (pool->free_count >= pool->free_most) {
        free(slab);
        return;
    }
    slab->next = pool->free;
    pool->free = slab;
    pool->free_count++;
}

int extents_add(struct extents *x, struct slab *slab, const uint8_t *data, uint32_t length)
{
    if (length == 0)
        return 0;
    if (x->count > 0) {
        struct extent *last = &x->item[x->count - 1];
        if (last->slab == slab && last->data + last->length == data) {
            last->length += length;
            return 0;
        }
    }
    if (x->count == x->capacity) {
        uint32_t capacity = x->capacity > 0 ? 2 * x->capacity : 4;
        struct extent *item = realloc(x->item, capacity * sizeof *item);
        if (item == NULL)
            return -1;
        x->item = item;
        x->capacity = capacity;
    }
    x->item[x->count++] = (struct extent){slab_ref(slab), data, length};
    return 0;
}

void extents_clear(struct extents *x)
{
    for (uint32_t i = 0; i < x->count; i++)
        slab_unref(x->item[i].slab);
    x->count = 0;
}

void extents_free(struct extents *x)
{
    extents_clear(x);
    free(x->item);
    *x = (struct extents){0};
}

uint32_t extents_take(const struct extents *x, struct extent_cursor *cursor, uint64_t most,
                      struct extent *piece)
{
    if (cursor->index >= x->count || most == 0)
        return 0;
    const struct extent *at = &x->item[cursor->index];
    uint32_t length = at->length - cursor->offset;
    if (length > most)
        length = (uint32_t)most;
    *piece = (struct extent){at->slab, at->data + cursor->offset, length};
    cursor->offset += length;
    if (cursor->offset == at->length) {
        cursor->index++;
        cursor->offset = 0;
    }
    return length;
}

uint8_t *slab_writer_take(struct slab_writer *w, struct slab_pool *pool, uint32_t length,
                          struct extent *out)
{
    assert(length <= SLAB_SIZE);
    if (w->slab != NULL && SLAB_SIZE - w->used < length)
        slab_writer_close(w);
    if (w->slab == NULL) {
        w->slab = slab_get(pool);
        if (w->slab == NULL)
            return NULL;
    } else if (w->slab->references == 1) {
        w->used = 0; /* no reference to its bytes is left: start over while the slab is in the
                      * cache */
    }
    uint8_t *at = w->slab->data + w->used;
    w->used += length;
    *out = (struct extent){slab_ref(w->slab), at, length};
    return at;
}

void slab_writer_close(struct slab_writer *w)
{
    if (w->slab != NULL)
        slab_unref(w->slab);
    *w = (struct slab_writer){0};
}

int extent_keep(struct slab_writer *w, struct slab_pool *pool, const struct extent *in,
                struct extent *out)
{
    uint8_t *at;

    if (in->slab->pool == NULL || in->length >= SLAB_COPIED_MOST ||
        in->slab->copied_out >= SLAB_COPIED_MOST) {
        *out = *in;
        (void)slab_ref(in->slab);
        return 0;
    }
    at = slab_writer_take(w, pool, in->length, out);
    if (at == NULL)
        return -1;
    memcpy(at, in->data, in->length);
    in->slab->copied_out += in->length;
    return 0;
}

/* The last extent, if the writer's next bytes follow it directly. */
static struct extent *being_written(const struct extents *x, const struct slab_writer *w)
{
    struct extent *last = x->count > 0 ? &x->item[x->count - 1] : NULL;

    if (last == NULL || last->slab != w->slab ||
        last->data + last->length != w->slab->data + w->used)
        return NULL;
    return last;
}

int extents_copy(struct extents *x, struct slab_writer *w, struct slab_pool *pool,
                 const uint8_t *data, uint32_t length)
{
    struct extent *last = being_written(x, w);
    struct extent fresh;

    if (last != NULL && length <= SLAB_SIZE - w->used) {
        memcpy(w->slab->data + w->used, data, length);
        w->used += length;
        last->length += length;
        return 0;
    }
    uint8_t *at = slab_writer_take(w, pool, length, &fresh);
    if (at == NULL)
        return -1;
    memcpy(at, data, length);
    int result = extents_add(x, fresh.slab, at, length);
    slab_unref(fresh.slab);
    return result;
}
