#include "daemon/lib/base/intervals.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"

/* Returns the number of intervals that end before `begin`, without touching it. */
static size_t count_before(const struct intervals *s, uint64_t begin)
{
    size_t low = 0, high = s->count;

    if (s->count > 0 && s->item[s->count - 1].end < begin)
        return s->count; /* as usual: bytes arrive in order */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->item[middle].end < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int intervals_add(struct intervals *s, uint64_t begin, uint64_t end)
{
    if (begin >= end)
        return 0;
    size_t first = count_before(s, begin), last = first;
    if (GROW(s->item, s->count, s->room) != 0)
        return -1;
    for (; last < s->count && s->item[last].begin <= end; last++) {
        if (s->item[last].begin < begin)
            begin = s->item[last].begin;
        if (s->item[last].end > end)
            end = s->item[last].end;
        s->bytes -= s->item[last].end - s->item[last].begin;
    }
    memmove(s->item + first + 1, s->item + last, (s->count - last) * sizeof *s->item);
    s->count = s->count + 1 - (last - first);
    s->bytes += end - begin;
    s->item[first] = (struct interval){begin, end};
    return 0;
}

bool intervals_contain(const struct intervals *s, uint64_t begin, uint64_t end)
{
    uint64_t until;

    return intervals_gap(s, begin, end, &until) >= end;
}

uint64_t intervals_gap(const struct intervals *s, uint64_t from, uint64_t end, uint64_t *until)
{
    size_t i = count_before(s, from);

    if (i < s->count && s->item[i].begin <= from) {
        if (s->item[i].end > from)
            from = s->item[i].end;
        i++;
    }
    *until = i < s->count && s->item[i].begin < end ? s->item[i].begin : end;
    return from < end ? from : end;
}

uint64_t intervals_missing(const struct intervals *s, uint64_t size, uint64_t at, uint64_t *begin)
{
    uint64_t place = 0; /* behind the last interval */

    for (size_t i = 0; i < s->count; i++) {
        uint64_t gap = s->item[i].begin - place;
        if (at < gap) {
            *begin = place + at;
            return gap - at;
        }
        at -= gap;
        place = s->item[i].end;
    }
    if (place >= size || at >= size - place)
        return 0;
    *begin = place + at;
    return size - *begin;
}

static int falling(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

int intervals_join(struct intervals *s, size_t most)
{
    if (s->count <= most)
        return 0;
    size_t gaps = s->count - 1, kept = 0;
    uint64_t *gap = reallocarray(NULL, gaps, sizeof *gap);
    if (gap == NULL)
        return -1;
    for (size_t i = 0; i < gaps; i++)
        gap[i] = s->item[i + 1].begin - s->item[i].end;
    qsort(gap, gaps, sizeof *gap, falling);
    /* the most - 1 widest gaps stay; among equally wide gaps, as many as there is room for */
    uint64_t least = most > 1 ? gap[most - 2] : UINT64_MAX;
    size_t equal = 0;
    for (size_t i = 0; i + 1 < most; i++)
        equal += gap[i] == least;
    free(gap);
    for (size_t i = 1; i < s->count; i++) {
        uint64_t width = s->item[i].begin - s->item[kept].end;
        bool stays = width > least || (most > 1 && width == least && equal > 0);
        if (stays && width == least)
            equal--;
        if (stays) {
            s->item[++kept] = s->item[i];
        } else {
            s->item[kept].end = s->item[i].end;
            s->bytes += width;
        }
    }
    s->count = kept + 1;
    return 0;
}

void intervals_cut(struct intervals *s, size_t most)
{
    for (; s->count > most; s->count--)
        s->bytes -= s->item[s->count - 1].end - s->item[s->count - 1].begin;
}

void intervals_free(struct intervals *s)
{
    free(s->item);
    *s = (struct intervals){0};
}

struct interval_walk intervals_walk(const struct intervals *s, uint64_t place)
{
    size_t i = 0;

    for (; place >= s->item[i].end - s->item[i].begin; i++)
        place -= s->item[i].end - s->item[i].begin;
    return (struct interval_walk){i, place};
}

struct interval intervals_next(const struct intervals *s, struct interval_walk *walk, uint64_t most)
{
    if (walk->index == s->count)
        return (struct interval){0};
    const struct interval *at = &s->item[walk->index];
    const uint64_t begin = at->begin + walk->taken, left = at->end - begin;

    if (left > most) {
        walk->taken += most;
        return (struct interval){begin, begin + most};
    }
    *walk = (struct interval_walk){walk->index + 1, 0};
    return (struct interval){begin, at->end};
}
