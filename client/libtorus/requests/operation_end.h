/* The ways in which an operation ends, and its repetition after a restart of the daemon. */
#pragma once

#include "client/libtorus/requests/client.h"

#define CLIENT_RETRY 100 /* ms between attempts to reach a daemon that is being restarted */

/* Ends the operation with the success in `reply` (takes ownership) or the failure in *e; the other one is NULL. Calls
 * `done` as its last action, because `done` may start the next operation. */
void client_finish(struct torus_client *c, Control__Reply *reply, struct torus_error *e);

/* The daemon has closed the connection: waits for its restart, to send the request again, if the operation allows it.
 * `undecided`: the daemon has reported that nothing was decided. Otherwise an exchange of files may have been
 * committed, and sending the request again could run it twice. Returns whether the operation now waits. */
bool client_await_daemon(struct torus_client *c, bool undecided);

/* The connection cannot be used any more, for the reason in *e. Fails the operation, with TORUS_ERROR_IN_DOUBT if
 * files may have been committed, unless client_await_daemon() lets it wait. */
void client_break_off(struct torus_client *c, struct torus_error *e);

/* Fails the operation because its deadline has passed. */
void client_expire(struct torus_client *c);

/* Asks the daemon to cancel the operation, unless it has been asked already. */
void client_end_early(struct torus_client *c);
