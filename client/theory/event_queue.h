/* What will happen in a simulation (timed.h), by time. Events of one time come in any order, and cost little, because
 * they wait together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum event_kind { EVENT_STARTS, EVENT_ASKS, EVENT_GIVES_BACK };

struct event {
    uint32_t message, hop;
    enum event_kind kind;
};

/* Zero-initialise it. */
struct event_queue {
    struct queued_event *event; /* list elements, used or free */
    size_t events, event_room;
    struct moment *moment; /* times with events, or free */
    size_t moments, moment_room;
    uint32_t free_event, free_moment; /* numbers from 1; 0: none */
    uint32_t *next;                   /* heap of moments */
    size_t nexts, next_room;
    uint32_t recent[64]; /* moments by the hash of their time */
};

/* Adds an event. Returns 0, or -1 without memory. */
int event_queue_add(struct event_queue *q, uint64_t at, struct event e);
/* The time of the next event, UINT64_MAX if there is none. */
uint64_t event_queue_next(const struct event_queue *q);
/* Removes an event of that time; there must be one. */
struct event event_queue_take(struct event_queue *q);
void event_queue_free(struct event_queue *q);
