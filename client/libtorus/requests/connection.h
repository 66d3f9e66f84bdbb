/* The socket to the daemon: sends frames and reads replies without waiting. */
#pragma once

#include <torus/torus.h>

#include "proto/control.pb-c.h"
#include "proto/frame.h"
#include "proto/unpack.h"

struct connection {
    int fd; /* -1 once it is closed */
    char *path;
    struct frame_stream in, out;
};

/* Connects to the socket at `path`, which is copied. Returns 0, or -1 with *e. In either case the caller frees *c
 * with connection_free(). */
int connection_open(struct connection *c, const char *path, struct torus_error *e);
void connection_free(struct connection *c);

/* Connects again after connection_close(), to the same path. Returns 0, or -1 with *e. */
int connection_reopen(struct connection *c, struct torus_error *e);

/* Closes the socket, and discards queued and unread bytes. */
void connection_close(struct connection *c);

/* Queues a request for connection_flush(). Returns 0, or -1 with *e: _MEMORY. */
int connection_queue(struct connection *c, const Control__Request *request, struct torus_error *e);

/* Returns whether queued bytes have not been sent yet. */
bool connection_is_sending(const struct connection *c);

/* Sends as many queued bytes as the socket takes. Returns 0, or -1 with *e: _IO. Returns 0 also if the daemon has
 * closed the connection, because its last replies must still be read. */
int connection_flush(struct connection *c, struct torus_error *e);

/* Reads available bytes without waiting. Returns 1 if bytes were read, 0 if none were available, or -1 with *e: _LOST
 * if the daemon has closed the connection, _IO or _MEMORY. */
int connection_read(struct connection *c, struct torus_error *e);

/* Unpacks the next reply from the bytes read. Returns 1 with *reply, which the caller frees with
 * unpack_free(), 0 if no complete reply has been read, or -1 with *e: _PROTOCOL. */
int connection_next(struct connection *c, Control__Reply **reply, struct torus_error *e);
