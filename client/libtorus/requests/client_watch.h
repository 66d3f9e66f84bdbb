/* The events that a client's epoll descriptor watches: the connection, deadlines, cancellation. */
#ifndef TORUSD_CLIENT_CLIENT_WATCH_H
#define TORUSD_CLIENT_CLIENT_WATCH_H

#include "client/libtorus/requests/client.h"

/* The time in `ms` milliseconds (not negative) on clock_ms(), or NEVER if that is too far away. */
int64_t client_clock_after(int64_t ms);

/* Watches a descriptor for the lifetime of the client. Returns 0, or -1 with errno. */
int client_watch_always(struct torus_client *c, int fd);

/* Watches for the events that the client waits for now. To be called whenever these may have
 * changed. */
void client_watch(struct torus_client *c);

/* Limits the time until the next reply, or the last one, to so many milliseconds; 0: no limit. */
void client_limit(struct torus_client *c, int64_t ms);

/* Closes the connection, and stops watching it. */
void client_drop(struct torus_client *c);

/* Sets the counter of an eventfd or timerfd to 0. Returns whether it was not 0 before. */
bool client_drain(int fd);

#endif
