/* Handles Ctrl-C during an operation of libtorus: the first SIGINT, SIGTERM or SIGHUP cancels the operation, and a
 * second one ends the program as usual. */
#pragma once

#include <stdbool.h>

struct torus_client;

/* From now on, signals cancel the operation under way on this client. NULL: signals only change the result of
 * interrupt_seen(). */
void interrupt_arm(struct torus_client *client);

/* Restores the previous signal handlers. Must be called before the client is closed. */
void interrupt_disarm(void);

/* Returns whether a signal has arrived. A signal does not cancel operations that start later. */
bool interrupt_seen(void);
