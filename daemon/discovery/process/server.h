/* The discovery socket: torusctl asks for all hosts, and sends setups. */
#ifndef TORUSD_DISCOVERY_PROCESS_SERVER_H
#define TORUSD_DISCOVERY_PROCESS_SERVER_H

#include <uv.h>

#include "daemon/discovery/discovery.h"

struct discovery_server;

/* Listens at the path (borrowed). The user and the group of this process may ask; only the user and root may
 * send setups. Returns NULL with *e. */
struct discovery_server *discovery_server_open(uv_loop_t *loop, const char *path,
                                               struct discovery *discovery, struct error *e);
/* Closes the socket and all clients, and frees *s when the loop has closed the handles. Call it before
 * discovery_free(). */
void discovery_server_close(struct discovery_server *s);

#endif
