/* The discovery socket: answers torusctl, and carries its setups. */
#pragma once

#include <uv.h>

#include "daemon/lib/discovery/discovery.h"

struct discovery_server;

/* Opens the socket; the path and `setups`, which clients are told (the socket of torusd-setup; NULL: none), must outlive
 * it. Returns NULL with *e. */
struct discovery_server *discovery_server_open(uv_loop_t *loop, const char *path,
                                               const char *setups, struct discovery *discovery,
                                               struct error *e);

/* Forgets the setups of all clients, so that `discovery` can be freed, and closes the socket; *s is freed when the loop
 * has closed its handles. */
void discovery_server_close(struct discovery_server *s);
