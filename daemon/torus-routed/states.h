/* Receives the link states from torusd over its control socket, and tells it with which of them the routes agree.
 * Connects again whenever the connection ends. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/lib/net/framed.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/control.pb-c.h"

struct states {
    uv_loop_t *loop;
    const char *path;
    /* Called for every message of the daemon; the numbers in it are checked against `torus`. `all`: the first one
     * after the connection has been made. */
    void (*heard)(void *context, bool all);
    /* Says what is known about the routes; `hosts` has room for ROUTE_STATES, by state. */
    void (*count)(void *context, Control__RouteCounts *counts, uint32_t *hosts);
    void *context;
    struct framed framed; /* if `opened` */
    uv_timer_t retry;
    bool opened, connected, closing, complained;
    uint64_t lost_at; /* uv_now() when the connection ended */

    struct torus torus; /* valid when anything was heard */
    uint32_t rank;
    uint32_t *up;   /* by node: bits of the ports whose links are up */
    uint32_t *kbit; /* by node * ports + port: what links carry away from nodes; 0: not known */
    bool *forwards; /* by node: packets of others may pass through it */
    uint64_t *confirmed; /* by node: the digest that it has confirmed; 0: none, or this node */
    bool confirms;       /* the daemon takes confirmations */
    uint64_t said;       /* the digest that the daemon was told over this connection, */
    bool said_forwards;
    char interface[TORUS_MAX_PORTS][16];
    bool renamed; /* the last message has changed `interface` */
};

/* Begins to connect. The caller sets loop, path, heard, count and context; the rest is zero. */
void states_start(struct states *s);

/* Tells the daemon with which link states the routes agree (route_planner_statement()), whether this host forwards, and
 * what count() returns. Does nothing if the daemon knows that, unless `again`: that a host forwards is valid for some
 * seconds only. */
void states_confirm(struct states *s, uint64_t digest, bool forwards, bool again);

/* Closes the connection. After the loop has ended, the caller calls states_free(). */
void states_stop(struct states *s);
void states_free(struct states *s);
