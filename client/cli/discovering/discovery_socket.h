/* Sends requests to torusd-discover and torusd-setup of this machine over their Unix sockets, and waits for the
 * answers. */
#pragma once

#include "client/cli/discovering/discovered.h"
#include "proto/discovery.pb-c.h"
#include "proto/error.h"

#define DISCOVERY_DEFAULT_SOCKET "/run/torusd-discover/discover.sock"

/* Connects to the socket of a program, which then has so many seconds for each answer. Returns a descriptor, or -1 with
 * *e, and errno ENOENT or ECONNREFUSED if there is no such process. */
int message_connect(const char *program, const char *path, int seconds, struct error *e);

/* Sends a message. Returns 0, or -1 with *e. */
int message_send(int fd, const ProtobufCMessage *message, struct error *e);

/* Waits for a message of this kind. Returns it, to be given to protobuf_c_message_free_unpacked(); or NULL with *e. */
ProtobufCMessage *message_read(int fd, const ProtobufCMessageDescriptor *kind, struct error *e);

/* Asks the discovery process at `socket` (NULL: the default) for all hosts that it knows. Returns 0 with *d,
 * which the caller gives to discovered_free(); or -1 with *e, and errno ENOENT or ECONNREFUSED if there is no
 * such process, else 0. */
int discover_hosts(const char *socket, struct discovered *d, struct error *e);

/* Waits for a reply. Returns it, or NULL with *e, which is the failure that the process reports. */
Discovery__Reply *discovery_reply_read(int fd, struct error *e);

/* Fills *e with a failure that a process reports. */
void discovery_failure_read(const Discovery__Failure *failure, struct error *e);
