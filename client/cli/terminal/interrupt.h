/* Handles Ctrl-C during an operation of libtorus: the first SIGINT, SIGTERM or SIGHUP cancels the operation, and a
 * second one ends the program as usual. */
#pragma once

#include <stdbool.h>

struct torus_client;

/* From now on, signals cancel the operation under way on this client. NULL: interrupt_seen() tells of them only. */
void interrupt_arm(struct torus_client *client);

/* Restores the previous signal handlers. Must be called before the client is closed. */
void interrupt_disarm(void);

/* Returns whether a signal has arrived. It has not cancelled operations that were started after it. */
bool interrupt_seen(void);
