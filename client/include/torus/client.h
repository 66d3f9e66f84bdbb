/* Clients: connections to a daemon, with or without an event loop. Part of torus/torus.h, which has the rules for
 * errors, ownership and threads. */
#ifndef TORUS_CLIENT_H
#define TORUS_CLIENT_H

#include <torus/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct torus_client;

/* The control socket of torusd, unless torusd is configured otherwise. */
#define TORUS_DEFAULT_SOCKET "/run/torusd/control.sock"

/* Returns the socket that torus_client_open(NULL) uses: the environment variable TORUS_SOCKET if it is set and not
 * empty, otherwise TORUS_DEFAULT_SOCKET. The text is static, or belongs to the environment.
 *
 * In every socket path that the library is given, "%h" stands for the host's name, so that all machines of a torus
 * can use the same setting. */
TORUS_EXPORT const char *torus_default_socket(void);

/* Connects to the daemon at this Unix socket; NULL stands for torus_default_socket(). Waits up to five seconds if the
 * daemon is busy. Returns a client, which the caller closes, or NULL with TORUS_ERROR_NO_DAEMON (no such socket,
 * nobody listens on it, or permission denied), _USAGE (path too long), _IO or _MEMORY. */
TORUS_EXPORT struct torus_client *torus_client_open(const char *path, struct torus_error *error);

/* Closes the connection and frees the client. NULL does nothing. An operation under way is abandoned, and its
 * callbacks are not called any more. The daemon then makes an abandoned exchange fail at all nodes, unless the root
 * has already decided to commit it. Must not be called from a callback. */
TORUS_EXPORT void torus_client_close(struct torus_client *client);

/* Sets how many milliseconds the daemon may take to accept an exchange or a barrier, or to answer any other request:
 * 10000 by default, 0 for no limit. Applies to operations that are started afterwards. */
TORUS_EXPORT void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds);

/* Asks the daemon to end the operation under way; does nothing if there is none. The operation ends when the daemon
 * reports how. An exchange usually ends with TORUS_ERROR_CANCELLED, after all nodes have removed what they had
 * written. If the request comes too late, the exchange ends with its result or with another error. The client can be
 * used afterwards. If the daemon does not report an end within 10 seconds, the connection is closed, and the
 * operation fails with TORUS_ERROR_CANCELLED or, if files may have been committed, with TORUS_ERROR_IN_DOUBT.
 *
 * Async-signal-safe. The client must not be closed during the call. */
TORUS_EXPORT void torus_client_cancel(struct torus_client *client);

/* Returns whether the client can still be used. It can after an error that the daemon has reported. After an error on
 * this side (no reply, or an invalid one) the connection is closed, and every later operation fails with
 * TORUS_ERROR_LOST. */
TORUS_EXPORT bool torus_client_is_open(const struct torus_client *client);

/* ---- Event loops ----------------------------------------------------------------------------- */

/* Each operation has two forms. torus_client_X() blocks until the operation has ended. torus_client_start_X() returns
 * at once, for programs with an event loop:
 *
 *     watch torus_client_fd(client) for POLLIN, from open to close
 *     torus_client_start_status(client, &status, done, data, &error)
 *     whenever the descriptor is readable: torus_client_dispatch(client)
 *
 * The descriptor (of an epoll instance) stays the same. It becomes readable whenever there is something to do: to
 * read, to write, to act on a deadline or to cancel. Always wait for POLLIN, never for POLLOUT. */

/* Called once when the operation has ended, from torus_client_dispatch() or a blocking call of this client, never
 * from the function that started the operation. On success `error` is NULL, and the result has been stored. On
 * failure `error` is valid during this call only, and the result pointer has been set to NULL. The callback may start
 * the next operation. It must not close the client. */
typedef void torus_done_fn(void *data, const struct torus_error *error);

/* Returns the descriptor to watch. It belongs to the client. */
TORUS_EXPORT int torus_client_fd(const struct torus_client *client);

/* Does all work that is possible without waiting, and calls the callbacks of the operation under way. Returns whether
 * an operation is still under way. */
TORUS_EXPORT bool torus_client_dispatch(struct torus_client *client);

#ifdef __cplusplus
}
#endif

#endif
