/* Temporary memory. */
#include <stdlib.h>

#include "client/mpi/job/job.h"

#define LEAST ((size_t)64 << 10)      /* the smallest piece */
#define IDLE 8u                       /* how many unused pieces are kept: a call uses up to 6 */
#define IDLE_BYTES ((size_t)64 << 20) /* the largest unused piece that is kept */

struct piece {
    struct piece *next;
    void *at;
    size_t size;
    bool shared, used;
};

static struct piece *pieces;

static struct torus_group *sharer; /* the group of scratch_share(); NULL: none */

bool scratch_has(const void *at)
{
    const uintptr_t address = (uintptr_t)at;

    for (const struct piece *p = pieces; p != NULL; p = p->next)
        if (address - (uintptr_t)p->at < p->size)
            return true;
    return false;
}

static void free_piece(struct piece **at)
{
    struct piece *p = *at;

    *at = p->next;
    if (p->shared)
        torus_memory_free(sharer, p->at);
    else
        free(p->at);
    free(p);
}

/* Returns the smallest unused piece that is large enough, or NULL. */
static struct piece *find_free_piece(size_t bytes)
{
    struct piece *best = NULL;

    for (struct piece *p = pieces; p != NULL; p = p->next)
        if (!p->used && p->size >= bytes && (best == NULL || p->size < best->size))
            best = p;
    return best;
}

static size_t rounded(size_t bytes)
{
    size_t size = LEAST;

    if (bytes > IDLE_BYTES)
        return bytes;
    while (size < bytes)
        size *= 2;
    return size;
}

static struct piece *add_piece(size_t bytes)
{
    struct piece *p = calloc(1, sizeof *p);
    struct torus_error ignored;

    if (p == NULL)
        return NULL;
    p->size = rounded(bytes);
    if (sharer != NULL && !job_has_failed(&ignored))
        p->at = torus_memory_new(sharer, p->size, &ignored);
    p->shared = p->at != NULL;
    if (!p->shared)
        p->at = malloc(p->size);
    if (p->at == NULL) {
        free(p);
        return NULL;
    }
    p->next = pieces;
    pieces = p;
    return p;
}

void *scratch_alloc(size_t bytes)
{
    struct piece *p;

    job_lock();
    p = find_free_piece(bytes);
    if (p == NULL)
        p = add_piece(bytes);
    if (p != NULL)
        p->used = true;
    job_unlock();
    return p != NULL ? p->at : NULL;
}

void scratch_free(void *memory)
{
    unsigned idle = 0;

    if (memory == NULL)
        return;
    job_lock();
    for (struct piece **at = &pieces; *at != NULL;) {
        struct piece *p = *at;
        if (p->at == memory)
            p->used = false;
        if (!p->used && (p->size > IDLE_BYTES || ++idle > IDLE))
            free_piece(at);
        else
            at = &p->next;
    }
    job_unlock();
}

void scratch_share(struct torus_group *group)
{
    sharer = group;
}

void scratch_forget(void)
{
    while (pieces != NULL)
        free_piece(&pieces);
    sharer = NULL;
}
