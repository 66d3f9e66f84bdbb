/* The open pages: connections that get server-sent events until one side ends them. A watcher that reads slowly leaves
 * events out: it holds at most the one that it reads, so that its memory is bounded. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
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
struct event_cursor {
    uint64_t seen[EVENT_KINDS];
    struct event *reading; /* NULL: none */
    size_t read;
};

/* Copies what comes next for this watcher to `out`. Returns the number of bytes; 0: it has everything. */
size_t event_cursor_read(struct event_cursor *p, const struct bulletin *b, char *out, size_t size);
void event_cursor_free(struct event_cursor *p);

#define WATCHERS_MOST 32u

struct watcher;

struct watchers {
    struct bulletin board;
    struct watcher *first;
    unsigned count;
    bool ending; /* the streams end */
};

/* Makes a response that has all events from now on. NULL: there are WATCHERS_MOST already (errno is 0), or memory is
 * short. The caller queues it to this connection, and drops it. */
struct MHD_Response *watchers_join(struct watchers *w, struct MHD_Connection *connection);
/* Goes on with those that wait for an event. */
void watchers_wake(struct watchers *w);
