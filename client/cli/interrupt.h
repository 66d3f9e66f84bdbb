/* Ctrl-C during a call of libtorus: the first SIGINT, SIGTERM or SIGHUP cancels the call, a second
 * one ends the program as usual. */
#ifndef TORUSD_CLI_INTERRUPT_H
#define TORUSD_CLI_INTERRUPT_H

struct torus_client;

/* From here on signals cancel calls on this client, */
void interrupt_arm(struct torus_client *client);

/* and from here on they are as before. To be called before the client is closed. */
void interrupt_disarm(void);

#endif
