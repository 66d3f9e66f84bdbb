#include "daemon/torusd/tree/spans.h"
#include "daemon/lib/base/grow.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of ranges that end before `begin`, without touching it. */
static size_t count_before(const struct spans *s, uint64_t begin)
{
    size_t low = 0, high = s->count;

    if (s->count > 0 && s->span[s->count - 1].end < begin)
        return s->count; /* as usual: bytes arrive in order */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->span[middle].end < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int spans_add(struct spans *s, uint64_t begin, uint64_t end)
{
    if (begin >= end)
        return 0;
    size_t first = count_before(s, begin), last = first;
    while (last < s->count && s->span[last].begin <= end) {
        if (s->span[last].begin < begin)
            begin = s->span[last].begin;
        if (s->span[last].end > end)
            end = s->span[last].end;
        last++;
    }
    if (first == last) {
        if (GROW(s->span, s->count, s->room) != 0)
            return -1;
        memmove(s->span + first + 1, s->span + first, (s->count - first) * sizeof *s->span);
        s->count++;
    } else {
        memmove(s->span + first + 1, s->span + last, (s->count - last) * sizeof *s->span);
        s->count -= last - first - 1;
    }
    s->span[first] = (struct tree_span){begin, end};
    return 0;
}

bool spans_contain(const struct spans *s, uint64_t begin, uint64_t end)
{
    uint64_t until;

    return spans_gap(s, begin, end, &until) >= end;
}

uint64_t spans_bytes(const struct spans *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->count; i++)
        sum += s->span[i].end - s->span[i].begin;
    return sum;
}

uint64_t spans_gap(const struct spans *s, uint64_t from, uint64_t end, uint64_t *until)
{
    size_t i = count_before(s, from);

    if (i < s->count && s->span[i].begin <= from) {
        if (s->span[i].end > from)
            from = s->span[i].end;
        i++;
    }
    *until = i < s->count && s->span[i].begin < end ? s->span[i].begin : end;
    return from < end ? from : end;
}

static int falling(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

int spans_join(struct spans *s, size_t most)
{
    if (s->count <= most)
        return 0;
    size_t gaps = s->count - 1, kept = 0;
    uint64_t *gap = reallocarray(NULL, gaps, sizeof *gap);
    if (gap == NULL)
        return -1;
    for (size_t i = 0; i < gaps; i++)
        gap[i] = s->span[i + 1].begin - s->span[i].end;
    qsort(gap, gaps, sizeof *gap, falling);
    /* the most - 1 widest gaps stay; of equally wide ones as many as there is room for */
    uint64_t least = most > 1 ? gap[most - 2] : UINT64_MAX;
    size_t equal = 0;
    for (size_t i = 0; i + 1 < most; i++)
        equal += gap[i] == least;
    free(gap);
    for (size_t i = 1; i < s->count; i++) {
        uint64_t width = s->span[i].begin - s->span[kept].end;
        bool stays = width > least || (most > 1 && width == least && equal > 0);
        if (stays && width == least)
            equal--;
        if (stays)
            s->span[++kept] = s->span[i];
        else
            s->span[kept].end = s->span[i].end;
    }
    s->count = kept + 1;
    return 0;
}

void spans_free(struct spans *s)
{
    free(s->span);
    *s = (struct spans){0};
}
