/* Clients: connections to a daemon, with or without an event loop. Part of torus/torus.h, which says what holds for all
 * functions. */
#ifndef TORUS_CLIENT_H
#define TORUS_CLIENT_H

#include <torus/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct torus_client;

/* The control socket of torusd, unless torusd is configured otherwise. */
#define TORUS_DEFAULT_SOCKET "/run/torusd/control.sock"

/* The socket that torus_client_open(NULL) uses: the environment variable TORUS_SOCKET if it is set
 * and not empty, else TORUS_DEFAULT_SOCKET. The text is static, or owned by the environment. In this
 * path, as in every path of a socket that the library is given, "%h" stands for the host's name, so
 * that all machines of a torus can use the same setting. */
TORUS_EXPORT const char *torus_default_socket(void);

/* Connects to the daemon at this Unix socket; NULL stands for torus_default_socket(). Waits up to
 * five seconds if the daemon is busy.
 * Returns a client that the caller closes, or NULL with TORUS_ERROR_NO_DAEMON (no such socket,
 * nobody listens, permission denied), _USAGE (path too long), _IO or _MEMORY. */
TORUS_EXPORT struct torus_client *torus_client_open(const char *path, struct torus_error *error);

/* Closes the connection and frees the client. NULL does nothing. An operation under way is
 * abandoned: its callbacks are not called any more. The daemon fails an abandoned exchange at all
 * nodes, unless the commit of the exchange has already been decided. Must not be called from a
 * callback. */
TORUS_EXPORT void torus_client_close(struct torus_client *client);

/* Sets how many milliseconds the daemon may take to accept an exchange or a barrier, and to answer
 * any other request: 10000 by default, 0 for no limit. The limit applies to operations started
 * afterwards. */
TORUS_EXPORT void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds);

/* Asks the daemon to end the operation under way. Does nothing if there is none. The daemon says how
 * the operation ends. An exchange usually ends with TORUS_ERROR_CANCELLED, after all nodes have
 * removed what they had written; if the request comes too late, it ends with its result or another
 * error. The client can be used afterwards. If the daemon does not say within 10 seconds how the
 * operation has ended, the connection is closed, and the operation fails with TORUS_ERROR_CANCELLED
 * or, if files may have been committed, with TORUS_ERROR_IN_DOUBT.
 * The function is async-signal-safe. The client must not be closed during the call. */
TORUS_EXPORT void torus_client_cancel(struct torus_client *client);

/* Returns whether the client can still be used. It can be used after an error that the daemon has
 * answered with. After an error on this side (no reply, or an invalid reply), the connection is
 * closed, and every later operation fails with TORUS_ERROR_LOST. */
TORUS_EXPORT bool torus_client_is_open(const struct torus_client *client);

/* ---- Event loops ----------------------------------------------------------------------------- */

/* Each operation exists twice: torus_client_X() blocks until it has ended, and
 * torus_client_start_X() returns at once, for programs with an event loop:
 *
 *     watch torus_client_fd(client) for POLLIN, from open to close
 *     torus_client_start_status(client, &status, done, data, &error)
 *     whenever the descriptor is readable: torus_client_dispatch(client)
 *
 * The descriptor (of an epoll instance) stays the same. It becomes readable whenever there is
 * something to do: to read, to write, to keep a deadline or to cancel. Always wait for POLLIN. */

/* Called once when the operation has ended, from torus_client_dispatch() or a blocking call of this
 * client, never from the function that started the operation. If the operation has succeeded, `error`
 * is NULL, and the result has been stored. If it has failed, `error` is valid during the call only,
 * and the result has been set to NULL. The callback may start the next operation. It must not close
 * the client. */
typedef void torus_done_fn(void *data, const struct torus_error *error);

/* The descriptor to watch, owned by the client. */
TORUS_EXPORT int torus_client_fd(const struct torus_client *client);

/* Does all work that is possible without waiting, and calls the callbacks of the operation under way.
 * Returns whether an operation is under way afterwards. */
TORUS_EXPORT bool torus_client_dispatch(struct torus_client *client);

#ifdef __cplusplus
}
#endif

#endif
