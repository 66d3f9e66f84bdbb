/* The control socket: a Unix socket on which clients send requests (proto/control.proto.in), one at
 * a time on a connection. A client that goes away abandons its exchange. */
#pragma once

#include "daemon/torusd/control/setup.h"

struct control_server;

/* Binds and listens. A socket file that nobody serves is replaced. The caller gives the result
 * to control_close(). Returns NULL with *e: another daemon serves this socket, no permission,
 * path too long. */
struct control_server *control_open(const struct control_setup *setup, struct error *e);

/* Schedules have been counted: answers the clients that wait for that. */
void control_schedules_counted(struct control_server *server);

/* Tells the clients that watch the links which interfaces the ports use now. */
void control_interfaces_changed(struct control_server *server);
/* A link of the torus has come up or gone down: tells the clients that watch the links. */
void control_links_changed(struct control_server *server);

/* Settings have changed: the access rules, which new clients are checked by; the data roots, the memory budget and the
 * nominal rate of links, which `status` shows. */
void control_settings_changed(struct control_server *server, const struct roots *roots,
                              uint64_t memory_budget, double link_mbit);

/* Answer surveys for this node (survey_tell()): with its state now, its last trace, or facts about the host. */
void control_tell_state(struct control_server *server);
void control_tell_trace(struct control_server *server);
void control_tell_facts(struct control_server *server, const char *facts);

/* Abandons the exchanges of the clients and closes everything; the memory is freed when the loop
 * has closed the handles. */
void control_close(struct control_server *server);
