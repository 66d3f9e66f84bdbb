/* Connections that have not shown the token. They must not keep out those that have: each gets little time, and when there
 * are too many, the oldest one is ended. */
#pragma once

#include <microhttpd.h>
#include <stdint.h>

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
/* Ends the connections that have had their time. Returns in how many milliseconds the next one has; -1: there is none. */
int64_t strangers_expire(struct strangers *s, int64_t now_ms);
