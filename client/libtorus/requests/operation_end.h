/* The ways in which an operation ends, and its continuation when the daemon is restarted. */
#ifndef TORUSD_CLIENT_OPERATION_END_H
#define TORUSD_CLIENT_OPERATION_END_H

#include "client/libtorus/requests/client.h"

#define CLIENT_RETRY 100 /* ms between two attempts to reach a daemon that is being restarted */

/* Ends the operation: with `reply`, which is taken over, or with *e. Calls its `done` at the
 * very end. */
void client_finish(struct torus_client *c, Control__Reply *reply, struct torus_error *e);

/* The daemon has gone away. `undecided`: the daemon has said that nothing was decided; otherwise
 * the exchange may have been committed, and asking again would do it twice. Returns whether the
 * operation waits to ask again. */
bool client_await_daemon(struct torus_client *c, bool undecided);

/* The connection cannot be used any more, for the reason in *e. The operation fails with that or
 * with what follows from it, unless it only waits for the daemon. */
void client_break_off(struct torus_client *c, struct torus_error *e);

/* The deadline of the operation has passed. */
void client_expire(struct torus_client *c);

/* Tells the daemon to cancel the operation, unless it has been told already. */
void client_end_early(struct torus_client *c);

#endif
