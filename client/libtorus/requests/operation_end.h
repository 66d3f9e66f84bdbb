/* The ways in which an operation ends, and what keeps it from ending when the daemon is restarted. */
#ifndef TORUSD_CLIENT_OPERATION_END_H
#define TORUSD_CLIENT_OPERATION_END_H

#include "client/libtorus/requests/client.h"

#define CLIENT_RETRY 100 /* ms between two attempts to reach a daemon that is restarted */

/* The operation has ended: with `reply`, which is taken over, or with *e. Its `done` is called last of all. */
void client_finish(struct torus_client *c, Control__Reply *reply, struct torus_error *e);

/* The daemon has gone. `undecided`: it has said that nothing was decided. To ask again for what may have been
 * committed would do it twice. Returns whether it will be asked again. */
bool client_await_daemon(struct torus_client *c, bool undecided);

/* The connection is of no more use, for the reason in *e. The operation fails with it, or with what follows from
 * it; unless the daemon is only waited for. */
void client_break_off(struct torus_client *c, struct torus_error *e);

/* The operation's deadline has passed. */
void client_expire(struct torus_client *c);

/* Tells the daemon to cancel the operation. Does nothing if it has been told. */
void client_end_early(struct torus_client *c);

#endif
