/* Asks the discovery process of this machine (torusd-discover) for all hosts. */
#ifndef TORUSD_CLI_DISCOVERY_SOCKET_H
#define TORUSD_CLI_DISCOVERY_SOCKET_H

#include "client/cli/discovering/discovered.h"
#include "proto/discovery.pb-c.h"
#include "proto/error.h"

#define DISCOVERY_DEFAULT_SOCKET "/run/torusd-discover/discover.sock"

/* Asks the discovery process at `socket` (NULL: the default) for all hosts that it knows. Returns 0 with *d,
 * which the caller gives to discovered_free(); or -1 with *e, and errno ENOENT or ECONNREFUSED if there is no
 * such process, else 0. */
int discover_hosts(const char *socket, struct discovered *d, struct error *e);

/* Waits for a reply. Returns it, or NULL with *e, which is the failure that the process reports. */
Discovery__Reply *discovery_reply_read(int fd, struct error *e);

/* Fills *e with a failure that a process reports. */
void discovery_failure_read(const Discovery__Failure *failure, struct error *e);

#endif
