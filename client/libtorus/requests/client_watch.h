/* The events that a client's epoll descriptor watches: the connection, deadlines, cancellation. */
#pragma once

#include "client/libtorus/requests/client.h"

/* Returns the time on clock_ms() in `ms` milliseconds (not negative), or NEVER if that is too far in the future. */
int64_t client_clock_after(int64_t ms);

/* Watches a descriptor for the lifetime of the client. Returns 0, or -1 with errno. */
int client_watch_always(struct torus_client *c, int fd);

/* Updates which events are watched. Call it whenever the state of the client may have changed. */
void client_watch(struct torus_client *c);

/* Sets the deadline of the operation to `ms` milliseconds from now; 0: no deadline. */
void client_limit(struct torus_client *c, int64_t ms);

/* Closes the connection, and stops watching it. */
void client_disconnect(struct torus_client *c);

/* Sets the counter of an eventfd or timerfd to 0. Returns whether it was not 0 before. */
bool client_drain(int fd);
