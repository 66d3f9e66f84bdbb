/* The parts of the page, and who gets them: requests of browsers, and what they are answered. */
#pragma once

#include <microhttpd.h>
#include <stdint.h>

#include "client/cli/serving/door.h"
#include "client/cli/serving/scene.h"
#include "client/cli/serving/watchers.h"

/* Connections that have not shown the token. They must not keep out connections that have shown it: each has little
 * time, and when there are too many, the oldest one is ended. */
#define STRANGERS_MOST 32u
#define STRANGER_MS 10000 /* how long one may take */

struct stranger {
    struct MHD_Connection *connection;
    int64_t since_ms;
};

/* Begins as zeros. */
struct strangers {
    struct stranger list[STRANGERS_MOST]; /* the oldest first */
    unsigned count;
};

/* Notes a new connection; ends the oldest one if there are too many. */
void strangers_come(struct strangers *s, struct MHD_Connection *connection, int64_t now_ms);
/* The connection has shown the token, or is closed. */
void strangers_forget(struct strangers *s, const struct MHD_Connection *connection);
/* Ends the connections whose time is over. Returns the milliseconds until the next one ends; -1: there is none. */
int64_t strangers_expire(struct strangers *s, int64_t now_ms);

struct site {
    const struct door *door;
    const struct scene *scene;
    struct watchers watchers;
    struct strangers strangers;
    bool wants_doctor; /* somebody has asked for new findings */
};

/* Answers a request: an MHD_AccessHandlerCallback whose context is a struct site. */
enum MHD_Result site_answer(void *site, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_size, void **request);
