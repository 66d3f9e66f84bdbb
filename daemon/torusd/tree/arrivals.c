#include "daemon/torusd/tree/arrivals.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_stamp.h"

int arrivals_init(struct arrivals *a, uint64_t entries)
{
    *a = (struct arrivals){.entries = entries, .stamps = -1};
    a->whole = calloc(entries / 8 + 1, 1);
    return a->whole != NULL ? 0 : -1;
}

static void free_one(struct partial *p)
{
    if (p->file >= 0)
        (void)close(p->file);
    spans_free(&p->spans);
    free(p->piece);
    free(p);
}

void arrivals_free(struct arrivals *a)
{
    for (size_t i = 0; i < ARRIVALS_BUCKETS; i++)
        while (a->partial[i] != NULL) {
            struct partial *p = a->partial[i];
            a->partial[i] = p->next;
            free_one(p);
        }
    if (a->whole != NULL && a->stamps >= 0)
        (void)close(a->stamps);
    free(a->whole);
    *a = (struct arrivals){.stamps = -1};
}

struct partial *arrivals_find(const struct arrivals *a, uint64_t index)
{
    struct partial *p = a->partial[index % ARRIVALS_BUCKETS];

    while (p != NULL && p->index != index)
        p = p->next;
    return p;
}

struct partial *arrivals_add(struct arrivals *a, uint64_t index)
{
    struct partial *p = calloc(1, sizeof *p), **bucket = &a->partial[index % ARRIVALS_BUCKETS];

    if (p == NULL)
        return NULL;
    p->index = index;
    p->file = -1;
    p->next = *bucket;
    *bucket = p;
    a->partials++;
    return p;
}

void arrivals_remove(struct arrivals *a, struct partial *p)
{
    struct partial **at = &a->partial[p->index % ARRIVALS_BUCKETS];

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    a->partials--;
    a->open -= p->file >= 0;
    free_one(p);
}

void arrivals_close_some(struct arrivals *a)
{
    struct stat st;

    while (a->open > ARRIVALS_FILES_OPEN) {
        struct partial *oldest = NULL;
        for (size_t i = 0; i < ARRIVALS_BUCKETS; i++)
            for (struct partial *p = a->partial[i]; p != NULL; p = p->next)
                if (p->file >= 0 && p->users == 0 && (oldest == NULL || p->used < oldest->used))
                    oldest = p;
        if (oldest == NULL)
            return;
        oldest->stamp =
            fstat(oldest->file, &st) == 0 ? arrivals_stamp_of(oldest->index, &st) : FILE_STAMP_NONE;
        (void)close(oldest->file);
        oldest->file = -1;
        a->open--;
    }
}
