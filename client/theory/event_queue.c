#include "client/theory/event_queue.h"

#include <stdlib.h>

#include "daemon/lib/base/grow.h"

/* Events and moments have numbers from 1: 0 ends a list. */
struct queued_event {
    struct event event;
    uint32_t next; /* of the same moment, or free */
};

struct moment {
    uint64_t at;    /* UINT64_MAX: free */
    uint32_t first; /* event; of a free moment the next free one */
};

static struct moment *moment(const struct event_queue *q, uint32_t number)
{
    return &q->moment[number - 1];
}

static uint64_t time_at(const struct event_queue *q, size_t place)
{
    return moment(q, q->next[place])->at;
}

/* A moment at this time: one that is there, if that is found at once, or a new one. 0 without memory. */
static uint32_t moment_at(struct event_queue *q, uint64_t at)
{
    uint32_t *recent = &q->recent[at * UINT64_C(0x9e3779b97f4a7c15) >> 58];
    uint32_t new = q->free_moment;

    if (*recent != 0 && moment(q, *recent)->at == at)
        return *recent;
    if (GROW(q->next, q->nexts, q->next_room) != 0 ||
        (new == 0 && GROW(q->moment, q->moments, q->moment_room) != 0))
        return 0;
    if (new != 0)
        q->free_moment = moment(q, new)->first;
    else
        new = (uint32_t)++q->moments;
    *moment(q, new) = (struct moment){.at = at};
    size_t i = q->nexts++;
    for (; i > 0 && time_at(q, (i - 1) / 2) > at; i = (i - 1) / 2)
        q->next[i] = q->next[(i - 1) / 2];
    q->next[i] = new;
    return *recent = new;
}

int event_queue_add(struct event_queue *q, uint64_t at, struct event e)
{
    uint32_t new = q->free_event;
    const uint32_t number = moment_at(q, at);

    if (number == 0 || (new == 0 && GROW(q->event, q->events, q->event_room) != 0))
        return -1;
    if (new != 0)
        q->free_event = q->event[new - 1].next;
    else
        new = (uint32_t)++q->events;
    q->event[new - 1] = (struct queued_event){e, moment(q, number)->first};
    moment(q, number)->first = new;
    return 0;
}

uint64_t event_queue_next(const struct event_queue *q)
{
    return q->nexts > 0 ? time_at(q, 0) : UINT64_MAX;
}

static void remove_moment(struct event_queue *q)
{
    const uint32_t first = q->next[0], last = q->next[--q->nexts];
    const uint64_t at = moment(q, last)->at;
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < q->nexts; i = child) {
        if (child + 1 < q->nexts && time_at(q, child + 1) < time_at(q, child))
            child++;
        if (time_at(q, child) >= at)
            break;
        q->next[i] = q->next[child];
    }
    q->next[i] = last;
    *moment(q, first) = (struct moment){UINT64_MAX, q->free_moment};
    q->free_moment = first;
}

struct event event_queue_take(struct event_queue *q)
{
    struct moment *m = moment(q, q->next[0]);
    const uint32_t number = m->first;
    struct queued_event *taken = &q->event[number - 1];

    m->first = taken->next;
    taken->next = q->free_event;
    q->free_event = number;
    if (m->first == 0)
        remove_moment(q);
    return taken->event;
}

void event_queue_free(struct event_queue *q)
{
    free(q->event);
    free(q->moment);
    free(q->next);
    *q = (struct event_queue){0};
}
