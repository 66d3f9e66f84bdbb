#include "daemon/torusd/copy/spans.h"

#include <stdlib.h>

int copy_spans_add(struct copy_spans *s, struct tree_span span)
{
    if (s->count == s->room) {
        const uint32_t room = s->room > 0 ? 2 * s->room : 16;
        struct tree_span *more = reallocarray(s->span, room, sizeof *more);
        if (more == NULL)
            return -1;
        s->span = more;
        s->room = room;
    }
    s->span[s->count++] = span;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct tree_span *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

int copy_spans_join(struct copy_spans *s)
{
    uint32_t count = 0;

    s->bytes = 0;
    if (s->count == 0)
        return 0;
    qsort(s->span, s->count, sizeof *s->span, compare);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct tree_span next = s->span[i];
        if (next.begin >= next.end)
            continue;
        if (count > 0 && next.begin <= s->span[count - 1].end) {
            if (next.end > s->span[count - 1].end)
                s->span[count - 1].end = next.end;
        } else {
            s->span[count++] = next;
        }
    }
    s->count = count;
    free(s->before);
    s->before = calloc(count > 0 ? count : 1, sizeof *s->before);
    if (s->before == NULL)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        s->before[i] = s->bytes;
        s->bytes += s->span[i].end - s->span[i].begin;
    }
    return 0;
}

struct tree_span copy_spans_at(const struct copy_spans *s, uint64_t place, uint64_t most)
{
    uint32_t low = 0, high = s->count;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->before[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    const uint64_t begin = s->span[low].begin + (place - s->before[low]);
    const uint64_t rest = s->span[low].end - begin;
    return (struct tree_span){begin, begin + (rest < most ? rest : most)};
}

void copy_spans_free(struct copy_spans *s)
{
    free(s->span);
    free(s->before);
    *s = (struct copy_spans){0};
}
