/* The open pages: connections that get events until one side ends them. */
#pragma once

#include <microhttpd.h>

#include "client/cli/serving/events.h"

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
