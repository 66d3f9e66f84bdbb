/* Asks the discovery process of this machine (torusd-discover) for all hosts, and sends setups to them. */
#ifndef TORUSD_CLI_DISCOVERY_SOCKET_H
#define TORUSD_CLI_DISCOVERY_SOCKET_H

#include <stddef.h>

#include "client/cli/discovering/discovered.h"
#include "proto/error.h"

#define DISCOVERY_DEFAULT_SOCKET "/run/torusd/discover.sock"
#define DISCOVERY_SETUP_SECONDS 420 /* longer than a host's command may run */

/* Asks the discovery process at `socket` (NULL: the default) for all hosts that it knows. Returns 0 with *d,
 * which the caller gives to discovered_free(); or -1 with *e, and errno ENOENT or ECONNREFUSED if there is no
 * such process, else 0. */
int discover_hosts(const char *socket, struct discovered *d, struct error *e);

/* What the command of a host has printed; texts end with '\0', and setup_reply_free() frees them. */
struct setup_reply {
    uint32_t status; /* exit status of the command */
    char *output;
    size_t output_length;
    char *errors; /* on its standard error */
    size_t errors_length;
};

/* Sends a setup of at most 256 KiB to the host with this id over the links, and waits for its answer. The host
 * runs its command (--accept-setups) with the word "apply" or "show". Returns 0 with *reply, also if the
 * command has failed; or -1 with *e: this user may not send setups (ERROR_REFUSED), the host does not accept
 * the setup (ERROR_REFUSED), is not reachable (ERROR_LINK), or did not answer (ERROR_TIMEOUT). */
int setup_send(const char *socket, const struct host_id *host, bool apply, const void *bytes,
               size_t size, struct setup_reply *reply, struct error *e);

/* The two halves of setup_send(), for setups of several hosts at once (at most 16). setup_begin() returns a
 * descriptor, which is readable when setup_finish() need not wait any more; or -1 with *e. setup_finish()
 * closes the descriptor. */
int setup_begin(const char *socket, const struct host_id *host, bool apply, const void *bytes,
                size_t size, struct error *e);
int setup_finish(int fd, struct setup_reply *reply, struct error *e);

void setup_reply_free(struct setup_reply *reply);

#endif
