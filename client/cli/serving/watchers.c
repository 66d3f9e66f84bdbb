#include "client/cli/serving/watchers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Events ---------------------------------------------------------------------------------- */

struct event {
    size_t holders, length;
    char *text;
};

static void drop(struct event *e)
{
    if (e == NULL || --e->holders > 0)
        return;
    free(e->text);
    free(e);
}

/* JSON in one line has no line ends, which would end the data of an event. */
static struct event *make(enum event_kind kind, const json_t *value)
{
    static const char *const names[] = {"torus", "state", "doctor", "lost"};
    struct event *e = calloc(1, sizeof *e);
    char *data = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6));
    int length = -1;

    if (e != NULL && data != NULL)
        length = asprintf(&e->text, "event: %s\ndata: %s\n\n", names[kind], data);
    free(data);
    if (length < 0) {
        free(e);
        return NULL;
    }
    e->holders = 1;
    e->length = (size_t)length;
    return e;
}

int bulletin_publish(struct bulletin *b, enum event_kind kind, json_t *value)
{
    drop(b->newest[kind]);
    b->newest[kind] = value != NULL ? make(kind, value) : NULL;
    json_decref(value);
    b->number[kind]++;
    return value == NULL || b->newest[kind] != NULL ? 0 : -1;
}

void bulletin_free(struct bulletin *b)
{
    for (unsigned kind = 0; kind < EVENT_KINDS; kind++)
        drop(b->newest[kind]);
    *b = (struct bulletin){0};
}

/* Takes the first event that the watcher has not seen. */
static bool choose(struct event_cursor *p, const struct bulletin *b)
{
    for (unsigned kind = 0; kind < EVENT_KINDS; kind++) {
        if (b->newest[kind] == NULL || p->seen[kind] == b->number[kind])
            continue;
        p->seen[kind] = b->number[kind];
        p->reading = b->newest[kind];
        p->reading->holders++;
        p->read = 0;
        return true;
    }
    return false;
}

size_t event_cursor_read(struct event_cursor *p, const struct bulletin *b, char *out, size_t size)
{
    if (p->reading == NULL && !choose(p, b))
        return 0;
    size_t count = p->reading->length - p->read;
    if (count > size)
        count = size;
    memcpy(out, p->reading->text + p->read, count);
    p->read += count;
    if (p->read == p->reading->length) {
        drop(p->reading);
        p->reading = NULL;
    }
    return count;
}

void event_cursor_free(struct event_cursor *p)
{
    drop(p->reading);
    p->reading = NULL;
}

/* ---- Watchers -------------------------------------------------------------------------------- */

#define READ_BYTES 16384u /* at once */

struct watcher {
    struct watchers *all;
    struct watcher *next, **link;
    struct MHD_Connection *connection;
    struct event_cursor place;
    bool waits;
};

/* Called when the connection takes more bytes. */
static ssize_t on_read(void *context, uint64_t position, char *out, size_t size)
{
    struct watcher *w = context;

    (void)position;
    if (w->all->ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    const size_t count = event_cursor_read(&w->place, &w->all->board, out, size);
    if (count == 0) {
        w->waits = true;
        MHD_suspend_connection(w->connection);
    }
    return (ssize_t)count;
}

static void on_free(void *context)
{
    struct watcher *w = context;

    *w->link = w->next;
    if (w->next != NULL)
        w->next->link = w->link;
    w->all->count--;
    event_cursor_free(&w->place);
    free(w);
}

struct MHD_Response *watchers_join(struct watchers *all, struct MHD_Connection *connection)
{
    errno = 0;
    if (all->count >= WATCHERS_MOST)
        return NULL;
    struct watcher *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, READ_BYTES, on_read, w, on_free);
    if (response == NULL) {
        free(w);
        errno = ENOMEM;
        return NULL;
    }
    *w = (struct watcher){
        .all = all, .next = all->first, .link = &all->first, .connection = connection};
    if (w->next != NULL)
        w->next->link = &w->next;
    all->first = w;
    all->count++;
    return response;
}

void watchers_wake(struct watchers *all)
{
    for (struct watcher *w = all->first; w != NULL; w = w->next)
        if (w->waits) {
            w->waits = false;
            MHD_resume_connection(w->connection);
        }
}
