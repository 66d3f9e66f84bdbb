#include "daemon/torusd/engine/arrived.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"

void arrived_free(struct arrived *a)
{
    free(a->span);
    *a = (struct arrived){0};
}

int arrived_add(struct arrived *a, uint32_t node, uint64_t begin, uint64_t end)
{
    if (begin >= end)
        return 0;
    if (GROW(a->span, a->count, a->room) != 0)
        return -1;
    a->span[a->count++] = (struct span){node, begin, end};
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct span *l = a, *r = b;

    if (l->node != r->node)
        return l->node < r->node ? -1 : 1;
    return (l->begin > r->begin) - (l->begin < r->begin);
}

void arrived_settle(struct arrived *a)
{
    uint32_t kept = 0;

    if (a->count == 0)
        return;
    qsort(a->span, a->count, sizeof *a->span, by_place);
    for (uint32_t i = 1; i < a->count; i++) {
        struct span *last = &a->span[kept];
        const struct span *next = &a->span[i];
        if (next->node != last->node || next->begin > last->end)
            a->span[++kept] = *next;
        else if (next->end > last->end)
            last->end = next->end;
    }
    a->count = kept + 1;
}

void arrived_trim(struct arrived *a, uint32_t most)
{
    uint32_t kept = 0, of_node = 0;

    for (uint32_t i = 0; i < a->count; i++) {
        of_node = i > 0 && a->span[i].node == a->span[i - 1].node ? of_node + 1 : 0;
        if (of_node < most)
            a->span[kept++] = a->span[i];
    }
    a->count = kept;
}

/* Returns the index of the first span of a node, or the index at which it would be inserted. */
static uint32_t find_first_span(const struct arrived *a, uint32_t node)
{
    uint32_t low = 0, high = a->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (a->span[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t arrived_bytes(const struct arrived *a, uint32_t node)
{
    uint64_t bytes = 0;

    for (uint32_t i = find_first_span(a, node); i < a->count && a->span[i].node == node; i++)
        bytes += a->span[i].end - a->span[i].begin;
    return bytes;
}

uint64_t arrived_end(const struct arrived *a, uint32_t node)
{
    uint32_t behind = find_first_span(a, node + 1);

    return behind > 0 && a->span[behind - 1].node == node ? a->span[behind - 1].end : 0;
}

void arrived_drop(struct arrived *a, uint32_t node)
{
    uint32_t first = find_first_span(a, node), behind = find_first_span(a, node + 1);

    if (first == behind)
        return;
    memmove(&a->span[first], &a->span[behind], (a->count - behind) * sizeof *a->span);
    a->count -= behind - first;
}

uint64_t arrived_missing(const struct arrived *a, uint32_t node, uint64_t size, uint64_t at,
                         uint64_t *begin)
{
    uint64_t place = 0; /* after the last span */

    for (uint32_t i = find_first_span(a, node); i < a->count && a->span[i].node == node; i++) {
        uint64_t gap = a->span[i].begin - place;
        if (at < gap) {
            *begin = place + at;
            return gap - at;
        }
        at -= gap;
        place = a->span[i].end;
    }
    if (place >= size || at >= size - place)
        return 0;
    *begin = place + at;
    return size - *begin;
}
