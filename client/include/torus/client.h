/* Clients: connections to a daemon, with or without an event loop. Part of torus/torus.h, which says what holds for all
 * functions. */
#ifndef TORUS_CLIENT_H
#define TORUS_CLIENT_H

#include <torus/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct torus_client;

/* Where torusd listens unless it is configured otherwise. */
#define TORUS_DEFAULT_SOCKET "/run/torusd/control.sock"

/* The socket that torus_client_open(NULL) uses: the environment variable TORUS_SOCKET if it is set
 * and not empty, else TORUS_DEFAULT_SOCKET. Static, or owned by the environment. In this path, as in
 * every other path of a socket that the library is given, "%h" stands for the host's name: with it,
 * the same setting can do on all machines of a torus. */
TORUS_EXPORT const char *torus_default_socket(void);

/* Connects to the daemon at this Unix socket; NULL stands for torus_default_socket(). Waits up to
 * five seconds if the daemon is busy.
 * Returns a client that the caller closes, or NULL with TORUS_ERROR_NO_DAEMON (no such socket,
 * nobody listens, permission denied), _USAGE (path too long), _IO or _MEMORY. */
TORUS_EXPORT struct torus_client *torus_client_open(const char *path, struct torus_error *error);

/* Closes the connection and frees the client. NULL does nothing. An operation under way is
 * abandoned: its callbacks are not called any more, and nobody is told how it ends; the daemon
 * fails an abandoned exchange at all nodes, unless it has already been decided to commit it. Must
 * not be called from a callback. */
TORUS_EXPORT void torus_client_close(struct torus_client *client);

/* How long the daemon may take for what it answers at once, in milliseconds: to accept an exchange or
 * a barrier, and for all other requests; 10000 unless set, 0 for no limit. Applies to operations
 * started afterwards. */
TORUS_EXPORT void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds);

/* Asks that the operation under way end; does nothing if there is none. It then ends as the daemon
 * says: an exchange usually with TORUS_ERROR_CANCELLED, after all nodes have removed what they had
 * written; or, if it was too late, with its result or another error. The client can be used
 * afterwards. Only if the daemon does not say how it has ended within 10 seconds, the connection is
 * closed, and the operation fails with TORUS_ERROR_CANCELLED or, if files may have been committed,
 * TORUS_ERROR_IN_DOUBT.
 * Async-signal-safe; the client must not be closed meanwhile. */
TORUS_EXPORT void torus_client_cancel(struct torus_client *client);

/* Whether the client can still be used. After an error that the daemon has answered with, it can.
 * After errors that arise on this side (no reply, or one that cannot be understood), the connection
 * is closed, and every further operation fails with TORUS_ERROR_LOST. */
TORUS_EXPORT bool torus_client_is_open(const struct torus_client *client);

/* ---- Event loops ----------------------------------------------------------------------------- */

/* Each operation exists twice: torus_client_X() blocks until it has ended, and
 * torus_client_start_X() returns at once, for programs with an event loop:
 *
 *     watch torus_client_fd(client) for POLLIN, from open to close
 *     torus_client_start_status(client, &status, done, data, &error)
 *     whenever the descriptor is readable: torus_client_dispatch(client)
 *
 * The descriptor (of an epoll instance) stays the same and becomes readable whenever there is
 * something to do, be it to read, to write, a deadline or a cancellation: the event to wait for is
 * always POLLIN. */

/* Called once when the operation has ended, from torus_client_dispatch() or a blocking call of this
 * client, never from the function that started it. `error` is NULL if it has succeeded, and the
 * result that was asked for has been stored; else it is valid during the call only, and the result
 * has been set to NULL. May start the next operation; must not close the client. */
typedef void torus_done_fn(void *data, const struct torus_error *error);

/* The descriptor to watch, owned by the client. */
TORUS_EXPORT int torus_client_fd(const struct torus_client *client);

/* Does what can be done without waiting, and calls the callbacks of the operation under way.
 * Returns whether one is under way afterwards. */
TORUS_EXPORT bool torus_client_dispatch(struct torus_client *client);

#ifdef __cplusplus
}
#endif

#endif
