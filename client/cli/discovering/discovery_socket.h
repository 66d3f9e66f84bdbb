/* Sends requests to torusd-discover and torusd-setup of this machine over their Unix sockets, and waits for the
 * answers. */
#pragma once

#include "client/cli/discovering/discovered.h"
#include "daemon/lib/discovery/seal.h"
#include "proto/discovery.pb-c.h"
#include "proto/error.h"

#define DISCOVERY_DEFAULT_SOCKET "/run/torusd-discover/discover.sock"

/* Asks the discovery process at `socket` (NULL: the default) for all hosts that it knows. Returns 0 with *d,
 * which the caller gives to discovered_free(); or -1 with *e, and errno ENOENT or ECONNREFUSED if there is no
 * such process, else 0. */
int discover_hosts(const char *socket, struct discovered *d, struct error *e);

/* --- setups --- */

#define SETUP_SECONDS 420 /* longer than a host's command may run */

/* A setup of at most DISCOVERY_SETUP_MOST bytes on its way. The first four are set by the caller, who keeps the bytes
 * and the keys. */
struct setup_sending {
    bool apply; /* otherwise the host's command only shows what would change */
    const void *bytes;
    size_t size;
    const struct secrets *secrets; /* cluster keys that the host may have */
    int fd;                        /* readable: setup_continue() does not wait */
    struct host_id host;
    bool own;
    struct reply_keys keys;
};

/* Begins to send a setup to another host, by the discovery process at `socket` (NULL: the default). Returns 0, or -1
 * with *e: this user may not send setups (ERROR_REFUSED), the host accepts none (ERROR_REFUSED), or is not reachable
 * (ERROR_LINK). */
int setup_begin(struct setup_sending *s, const char *socket, const struct host_id *host,
                struct error *e);

/* Begins to send a setup to this host, by torusd-setup at `socket`, which must be a process of root or of this user.
 * Returns 0, or -1 with *e. */
int setup_begin_own(struct setup_sending *s, const char *socket, struct error *e);

/* Handles what has arrived at `fd`. Returns 1 if the host's command has run, with *answer, whose texts
 * are in *storage (to be freed) and end with '\0'; 0 if more is to come; or -1 with *e, as setup_begin(), or if the
 * host did not answer (ERROR_TIMEOUT). Closes the descriptor unless it returns 0. */
int setup_continue(struct setup_sending *s, struct setup_answer *answer, char **storage,
                   struct error *e);
