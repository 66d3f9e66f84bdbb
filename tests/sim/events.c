#include "tests/sim/events.h"

#include <stdlib.h>

#include "tests/sim/memory.h"

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void events_add(struct events *events, struct event event)
{
    if (events->count == events->capacity) {
        events->capacity = events->capacity > 0 ? 2 * events->capacity : 256;
        events->heap = sim_realloc(events->heap, events->capacity * sizeof *events->heap);
    }
    size_t i = events->count++;
    event.order = events->order++;
    for (; i > 0 && before(&event, &events->heap[(i - 1) / 2]); i = (i - 1) / 2)
        events->heap[i] = events->heap[(i - 1) / 2];
    events->heap[i] = event;
}

bool events_next(struct events *events, struct event *event)
{
    struct event *heap = events->heap;

    if (events->count == 0)
        return false;
    *event = heap[0];
    const struct event *last = &heap[--events->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < events->count; i = child) {
        if (child + 1 < events->count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = *last;
    return true;
}

void events_free(struct events *events)
{
    free(events->heap);
    *events = (struct events){0};
}

/* splitmix64 */
uint64_t chance_word(struct chance *c)
{
    uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t chance_below(struct chance *c, uint64_t below)
{
    return chance_word(c) % below;
}

struct chance chance_stream(uint64_t seed, uint64_t stream, uint64_t index)
{
    struct chance c = {seed};

    c.state = chance_word(&c) ^ stream << 32;
    c.state = chance_word(&c) ^ index;
    (void)chance_word(&c);
    return c;
}

uint64_t chance_magnitude(struct chance *c, uint64_t least, uint64_t most)
{
    uint64_t octaves = 0, low;

    while (octaves < 63 && least << octaves <= most / 2)
        octaves++;
    low = least << chance_below(c, octaves + 1);
    return low + chance_below(c, (low <= most / 2 ? low : most - low) + 1);
}
