/* Messages (proto/frame.h) over a connection of a Unix socket, on a loop. */
#pragma once

#include <uv.h>

#include "proto/frame.h"

struct framed {
    uv_pipe_t pipe;
    struct frame_stream in;
    uint32_t most; /* bytes of a message that arrives; a longer one ends the connection */
    /* A message has arrived (borrowed). */
    void (*took)(struct framed *f, const uint8_t *bytes, size_t size);
    /* The connection has ended, for whatever reason, and *f can be freed. */
    void (*closed)(struct framed *f);
    void *context;
};

/* Starts to read from a connected socket; most, took() and closed() are set. Takes the descriptor in any case. Returns
 * 0, or -1: closed() follows. */
int framed_open(struct framed *f, uv_loop_t *loop, int fd);

/* Sends a packed message, whose frame it frees; NULL (there was no memory) closes the connection, and so does a peer
 * that does not read. */
void framed_write(struct framed *f, uint8_t *frame, size_t size);

/* Packs and sends a message. */
void framed_send(struct framed *f, const ProtobufCMessage *message);

/* Closes the connection, unless that has begun; closed() follows. */
void framed_close(struct framed *f);
