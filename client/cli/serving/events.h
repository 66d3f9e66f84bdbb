/* Server-sent events: what all watchers see, and where each of them is. A watcher that reads slowly leaves events out: it
 * holds at most the one that it reads, so that its memory is bounded. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which a new watcher gets them. */
enum event_kind {
    EVENT_TORUS,  /* the torus as torus.js draws it */
    EVENT_STATE,  /* the last survey */
    EVENT_DOCTOR, /* the last findings */
    EVENT_LOST,   /* why there is no new state */
    EVENT_KINDS
};

struct event; /* a text that several may hold */

/* The newest event of each kind. */
struct bulletin {
    struct event *newest[EVENT_KINDS]; /* NULL: none */
    uint64_t number[EVENT_KINDS];      /* how many there were */
};

/* Publishes a value, which it takes over; NULL takes the event of this kind away. Returns 0, or -1 if memory is short:
 * the kind then has no event. */
int bulletin_publish(struct bulletin *b, enum event_kind kind, json_t *value);
void bulletin_free(struct bulletin *b);

/* The place of a watcher; begins as zeros. */
struct place {
    uint64_t seen[EVENT_KINDS];
    struct event *reading; /* NULL: none */
    size_t read;
};

/* Copies what comes next for this watcher to `out`. Returns the number of bytes; 0: it has everything. */
size_t place_read(struct place *p, const struct bulletin *b, char *out, size_t size);
void place_free(struct place *p);
