/* What a client's epoll descriptor watches: the connection, deadlines, cancellation. */
#ifndef TORUSD_CLIENT_CLIENT_WATCH_H
#define TORUSD_CLIENT_CLIENT_WATCH_H

#include "client/libtorus/requests/client.h"

/* So many milliseconds (not negative) from now on clock_ms(), or NEVER if that is too far away. */
int64_t client_clock_after(int64_t ms);

/* Watches a descriptor for as long as the client lives. Returns 0, or -1 with errno. */
int client_watch_always(struct torus_client *c, int fd);

/* Watches for what the client waits for now. To be called whenever that may have changed. */
void client_watch(struct torus_client *c);

/* The next reply, or the last one, may take so many milliseconds; 0: no limit. */
void client_limit(struct torus_client *c, int64_t ms);

/* Closes the connection, and does not watch it any more. */
void client_drop(struct torus_client *c);

/* Whether the counter of an eventfd or timerfd was not 0; it is afterwards. */
bool client_drain(int fd);

#endif
