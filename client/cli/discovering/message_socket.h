/* Requests and answers over the Unix sockets of torusd-discover and torusd-setup, which wait. */
#ifndef TORUSD_CLI_MESSAGE_SOCKET_H
#define TORUSD_CLI_MESSAGE_SOCKET_H

#include <protobuf-c/protobuf-c.h>

#include "proto/error.h"

/* Connects to the socket of a program; an answer may take so many seconds. Returns a descriptor, or -1 with *e, and errno
 * ENOENT or ECONNREFUSED if there is no such process. */
int message_connect(const char *program, const char *path, int seconds, struct error *e);

/* Sends a message. Returns 0, or -1 with *e. */
int message_send(int fd, const ProtobufCMessage *message, struct error *e);

/* Waits for a message of this kind. Returns it, to be given to protobuf_c_message_free_unpacked(); or NULL with *e. */
ProtobufCMessage *message_read(int fd, const ProtobufCMessageDescriptor *kind, struct error *e);

#endif
