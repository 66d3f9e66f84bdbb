/* The HTTP server of monitoring: /metrics and /healthz, on one address, for reading only.
 *
 * Strangers may connect, so nothing that they do costs the daemon more than a little: it accepts SERVER_RATE
 * connections a second, and has at most SERVER_CONNECTIONS of them, each for SERVER_TIME and one request. A further
 * connection closes the oldest one, which most likely has nothing to say. */
#pragma once

#include <uv.h>

#include "daemon/lib/net/address.h"
#include "daemon/torusd/disk/roots.h"
#include "daemon/torusd/metrics/metrics.h"

#define SERVER_CONNECTIONS 16u
#define SERVER_RATE 100u      /* a second */
#define SERVER_TIME_MS 10000u /* of a connection */

struct metrics_server;

/* Parts of the daemon that are borrowed: they must outlive metrics_close(). */
struct metrics_setup {
    uv_loop_t *loop;
    const char *address;       /* as endpoint_parse_own() reads it */
    const struct roots *roots; /* copied */
    struct metrics_view view;  /* without room */
};

/* Listens on the address, which need not exist yet, and logs it. metrics_close() frees the server. Returns NULL with
 * *e: another program listens there, no permission, no such interface. */
struct metrics_server *metrics_open(const struct metrics_setup *setup, struct error *e);

/* Returns the address with the real port, "127.0.0.1:9101"; borrowed. */
const char *metrics_address(const struct metrics_server *server);

/* The data roots have changed. NULL does nothing. */
void metrics_roots_changed(struct metrics_server *server, const struct roots *roots);

/* Closes all connections; the memory is freed when the loop has closed the handles. NULL does nothing. */
void metrics_close(struct metrics_server *server);
