/* A list of chunks, each a shared memory from which calls lease parts, first fit. A loop of
 * calls of one size uses the same bytes again and again, so they stay in caches and page tables. */
#include "client/libtorus/groups/staging.h"

#include <stdlib.h>

#include "client/libtorus/common/fail.h"

#define CHUNK_LEAST ((size_t)1 << 20)
#define IDLE_MOST ((size_t)256 << 20) /* bytes that are kept unused, beside the largest chunk */

struct staging_chunk {
    struct staging_chunk *next; /* the largest first */
    struct shared_memory memory;
    struct lease *first;
};

/* Finds a gap of that size: its offset, and the lease before it (NULL: none). */
static bool find_gap(const struct staging_chunk *c, size_t bytes, size_t *at, struct lease **after)
{
    *at = 0;
    *after = NULL;
    for (struct lease *l = c->first; l != NULL; l = l->next) {
        if (l->offset - *at >= bytes)
            return true;
        *at = l->offset + l->size;
        *after = l;
    }
    return c->memory.size - *at >= bytes;
}

static void take(struct staging_chunk *c, size_t bytes, size_t at, struct lease *after,
                 struct lease *lease)
{
    struct lease **place = after != NULL ? &after->next : &c->first;

    *lease = (struct lease){c, *place, at, bytes, c->memory.number, c->memory.data + at};
    *place = lease;
}

static void drop(struct staging_chunk **at, struct program_link *link)
{
    struct staging_chunk *c = *at;

    *at = c->next;
    link_memory_free(link, &c->memory);
    free(c);
}

/* Frees chunks without leases, the smallest first, until not too many are left. */
static void tidy(struct staging *s, struct program_link *link)
{
    size_t idle = 0;

    if (s->first == NULL)
        return;
    for (struct staging_chunk **at = &s->first->next; *at != NULL;) {
        if ((*at)->first == NULL)
            idle += (*at)->memory.size;
        if ((*at)->first == NULL && idle > IDLE_MOST) {
            idle -= (*at)->memory.size;
            drop(at, link);
        } else {
            at = &(*at)->next;
        }
    }
}

/* Rounds up to a quarter of a power of two, so that slowly growing sizes do not need a new chunk
 * each time. */
static size_t chunk_size(size_t bytes)
{
    size_t step = CHUNK_LEAST;

    if (bytes > SIZE_MAX / 4)
        return bytes;
    while (step < bytes / 4)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

static int add_chunk(struct staging *s, struct program_link *link, size_t bytes,
                     struct torus_error *e)
{
    struct staging_chunk *c = calloc(1, sizeof *c), **at = &s->first;

    if (c == NULL)
        return fail_memory(e);
    /* Smaller unused chunks are not likely to be used again soon. */
    while (*at != NULL)
        if ((*at)->first == NULL && (*at)->memory.size < bytes)
            drop(at, link);
        else
            at = &(*at)->next;
    if (link_memory_new(link, chunk_size(bytes), &c->memory, e) != 0) {
        free(c);
        return -1;
    }
    for (at = &s->first; *at != NULL && (*at)->memory.size >= c->memory.size; at = &(*at)->next)
        ;
    c->next = *at;
    *at = c;
    return 0;
}

int staging_lease(struct staging *s, struct program_link *link, size_t bytes, struct lease *lease,
                  struct torus_error *e)
{
    size_t size = (bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN, at;
    struct lease *after;

    *lease = (struct lease){0};
    if (size < bytes)
        return fail_memory(e);
    for (int turn = 0; turn < 2; turn++) {
        for (struct staging_chunk *c = s->first; c != NULL; c = c->next)
            if (find_gap(c, size, &at, &after)) {
                take(c, size, at, after, lease);
                return 0;
            }
        if (turn == 0 && add_chunk(s, link, size, e) != 0)
            return -1;
    }
    return fail_memory(e);
}

void staging_return(struct staging *s, struct program_link *link, struct lease *lease)
{
    struct lease **at;

    if (lease->chunk == NULL)
        return;
    for (at = &lease->chunk->first; *at != lease; at = &(*at)->next)
        ;
    *at = lease->next;
    if (lease->chunk->first == NULL && lease->chunk != s->first)
        tidy(s, link);
    lease->chunk = NULL;
}

void staging_free(struct staging *s, struct program_link *link)
{
    while (s->first != NULL)
        drop(&s->first, link);
}
