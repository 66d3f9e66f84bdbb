#include "client/cli/serving/watchers.h"

#include <errno.h>
#include <stdlib.h>

#define READ_BYTES 16384u /* at once */

struct watcher {
    struct watchers *all;
    struct watcher *next, **link;
    struct MHD_Connection *connection;
    struct place place;
    bool waits;
};

/* Called when the connection takes more bytes. */
static ssize_t on_read(void *context, uint64_t position, char *out, size_t size)
{
    struct watcher *w = context;

    (void)position;
    if (w->all->ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    const size_t count = place_read(&w->place, &w->all->board, out, size);
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
    place_free(&w->place);
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
