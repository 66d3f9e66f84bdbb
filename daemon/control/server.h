/* The control socket: a Unix socket on which clients ask (proto/control.proto). One request a
 * connection at a time; a client that goes away abandons its exchange. */
#ifndef TORUSD_CONTROL_SERVER_H
#define TORUSD_CONTROL_SERVER_H

#include "daemon/control/setup.h"

struct control_server;

/* Binds and listens. Returns NULL with *e: another daemon serves this socket, no permission, path
 * too long. A socket file that nobody serves is replaced. */
struct control_server *control_open(const struct control_setup *setup, struct error *e);

/* Schedules have been counted: clients may wait for that. */
void control_planned(struct control_server *server);

/* Abandons the exchanges of its clients and closes; freed when the loop has closed the handles. */
void control_close(struct control_server *server);

#endif
