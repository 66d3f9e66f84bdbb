#include "client/mpi/job/scratch.h"

#include <stdlib.h>

#include "client/mpi/job/job.h"

#define LEAST ((size_t)64 << 10)
#define IDLE 4u                       /* pieces that are kept */
#define IDLE_BYTES ((size_t)64 << 20) /* the largest piece that is kept */

struct piece {
    struct piece *next;
    void *at;
    size_t size;
    bool shared, used;
};

static struct piece *pieces;
static struct torus_group *sharer; /* the group whose memory is shared; NULL: none is */

static void drop(struct piece **at)
{
    struct piece *p = *at;

    *at = p->next;
    if (p->shared)
        torus_memory_free(sharer, p->at);
    else
        free(p->at);
    free(p);
}

/* The smallest piece that is large enough. */
static struct piece *find(size_t bytes)
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

static struct piece *add(size_t bytes)
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

void *scratch_take(size_t bytes)
{
    struct piece *p;

    job_lock();
    p = find(bytes);
    if (p == NULL)
        p = add(bytes);
    if (p != NULL)
        p->used = true;
    job_unlock();
    return p != NULL ? p->at : NULL;
}

void scratch_give(void *memory)
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
            drop(at);
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
        drop(&pieces);
    sharer = NULL;
}
