/* A list of chunks of shared memory, from which calls lease parts, first fit. So a loop of calls of one size reuses
 * the same bytes, which stay in caches and page tables. */
#include "client/libtorus/groups/staging.h"

#include <stdlib.h>

#include "client/libtorus/common/fail.h"

#define CHUNK_LEAST ((size_t)1 << 20)
#define IDLE_MOST                                                                                  \
    ((size_t)256 << 20) /* bytes of unused chunks to keep, besides the largest chunk */

struct staging_chunk {
    struct staging_chunk *next; /* the largest first */
    struct shared_memory memory;
    struct lease *first;
};

/* Finds a gap of `bytes` in a chunk. Returns whether there is one, with its offset *at and the lease before it (NULL:
 * none) in *after. */
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

static void insert_lease(struct staging_chunk *c, size_t bytes, size_t at, struct lease *after,
                         struct lease *lease)
{
    struct lease **place = after != NULL ? &after->next : &c->first;

    *lease = (struct lease){c, *place, at, bytes, c->memory.number, c->memory.data + at};
    *place = lease;
}

static void free_chunk(struct staging_chunk **at, struct program_link *link)
{
    struct staging_chunk *c = *at;

    *at = c->next;
    link_memory_free(link, &c->memory);
    free(c);
}

/* Frees chunks without leases, the smallest first, until at most IDLE_MOST bytes are unused. Keeps the largest
 * chunk. */
static void free_idle_chunks(struct staging *s, struct program_link *link)
{
    size_t idle = 0;

    if (s->first == NULL)
        return;
    for (struct staging_chunk **at = &s->first->next; *at != NULL;) {
        if ((*at)->first == NULL)
            idle += (*at)->memory.size;
        if ((*at)->first == NULL && idle > IDLE_MOST) {
            idle -= (*at)->memory.size;
            free_chunk(at, link);
        } else {
            at = &(*at)->next;
        }
    }
}

/* Rounds up to a quarter of a power of two, so that not every slightly larger size needs a new chunk. */
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
    /* Free smaller unused chunks: calls have become larger, and are unlikely to use these again soon. */
    while (*at != NULL)
        if ((*at)->first == NULL && (*at)->memory.size < bytes)
            free_chunk(at, link);
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
    for (int attempt = 0; attempt < 2; attempt++) {
        for (struct staging_chunk *c = s->first; c != NULL; c = c->next)
            if (find_gap(c, size, &at, &after)) {
                insert_lease(c, size, at, after, lease);
                return 0;
            }
        if (attempt == 0 && add_chunk(s, link, size, e) != 0)
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
        free_idle_chunks(s, link);
    lease->chunk = NULL;
}

void staging_free(struct staging *s, struct program_link *link)
{
    while (s->first != NULL)
        free_chunk(&s->first, link);
}
