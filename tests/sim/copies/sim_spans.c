#include "tests/sim/copies/sim_spans.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/memory.h"

void sim_spans_add(struct sim_spans *s, uint64_t begin, uint64_t end)
{
    size_t first = 0, last;

    if (begin >= end)
        return;
    while (first < s->count && s->span[first].end < begin)
        first++;
    for (last = first; last < s->count && s->span[last].begin <= end; last++) {
        begin = s->span[last].begin < begin ? s->span[last].begin : begin;
        end = s->span[last].end > end ? s->span[last].end : end;
    }
    if (last == first)
        s->span = sim_realloc(s->span, (s->count + 1) * sizeof *s->span);
    memmove(&s->span[first + 1], &s->span[last], (s->count - last) * sizeof *s->span);
    s->count += 1 - (last - first);
    s->span[first] = (struct interval){begin, end};
}

void sim_spans_lack(const struct sim_spans *s, uint64_t begin, uint64_t end, uint64_t shift,
                    struct sim_spans *lacks)
{
    for (size_t i = 0; i < s->count && begin < end; i++) {
        if (s->span[i].end <= begin)
            continue;
        if (s->span[i].begin >= end)
            break;
        if (s->span[i].begin > begin)
            sim_spans_add(lacks, begin + shift, s->span[i].begin + shift);
        begin = s->span[i].end;
    }
    if (begin < end)
        sim_spans_add(lacks, begin + shift, end + shift);
}

uint64_t sim_spans_bytes(const struct sim_spans *s)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->count; i++)
        bytes += s->span[i].end - s->span[i].begin;
    return bytes;
}

void sim_spans_join(struct sim_spans *s, size_t most)
{
    while (s->count > most && s->count > 1) {
        size_t closest = 0;
        for (size_t i = 1; i + 1 < s->count; i++)
            if (s->span[i + 1].begin - s->span[i].end <
                s->span[closest + 1].begin - s->span[closest].end)
                closest = i;
        sim_spans_add(s, s->span[closest].end, s->span[closest + 1].begin);
    }
}

void sim_spans_free(struct sim_spans *s)
{
    free(s->span);
    *s = (struct sim_spans){0};
}
