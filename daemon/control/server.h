/* The control socket: a Unix socket on which clients ask (proto/control.proto). One request a
 * connection at a time; a client that goes away cancels its exchange. */
#ifndef TORUSD_CONTROL_SERVER_H
#define TORUSD_CONTROL_SERVER_H

#include <uv.h>

#include "daemon/exchange/exchange.h"
#include "daemon/files/roots.h"

struct control_server;

/* What requests are answered from; all borrowed. */
struct control_setup {
    uv_loop_t *loop;
    const char *path;
    struct router *router;
    struct exchanges *exchanges;
    const struct roots *roots;
    const struct sockaddr_storage *address; /* by port */
    double link_mbit;
    uint64_t memory_budget;
};

/* Binds and listens. Returns NULL with *e: another daemon serves this socket, no permission, path
 * too long. A socket file that nobody serves is replaced. */
struct control_server *control_open(const struct control_setup *setup, struct error *e);

/* Schedules have been counted: clients may wait for that. */
void control_planned(struct control_server *server);

/* Cancels the exchanges of its clients and closes; freed when the loop has closed the handles. */
void control_close(struct control_server *server);

#endif
