/* Ctrl-C during an operation of libtorus: the first SIGINT, SIGTERM or SIGHUP cancels the
 * operation, a second one ends the program as usual. */
#ifndef TORUSD_CLI_INTERRUPT_H
#define TORUSD_CLI_INTERRUPT_H

#include <stdbool.h>

struct torus_client;

/* From here on signals cancel the operation under way on this client, */
void interrupt_arm(struct torus_client *client);

/* and from here on they are as before. To be called before the client is closed. */
void interrupt_disarm(void);

/* Whether there has been one: operations that were started since are not cancelled by it. */
bool interrupt_seen(void);

#endif
