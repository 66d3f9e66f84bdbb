/* Framing, the same for peers and clients:
 *
 *     u32 head length | u32 body length | head (protobuf) | body (raw bytes)
 *
 * big-endian; both lengths are checked against caps before anything is allocated. The body carries
 * block bytes only, outside protobuf, so that they are never copied by unpacking. Between peers each head ends with
 * a check of itself and of the lengths (daemon/router/frames/head_check.h). */
#ifndef TORUSD_PROTO_FRAME_H
#define TORUSD_PROTO_FRAME_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

/* Neighbours must have the same, */
#define PROTOCOL_VERSION 12u
/* and so must a client and its daemon: of control.proto as a whole. Fields and requests that an older side may
 * ignore, or refuse by themselves, do not change it. */
#define CONTROL_VERSION 1u

#define FRAME_PREFIX_SIZE 8u
#define FRAME_MAX_BODY (64u * 1024u)        /* a relay can pass on what is no longer than this */
#define FRAME_MAX_HEAD (4u * 1024u * 1024u) /* a report of every node of a large torus fits */
#define FRAME_MAX_REPLY                                                                            \
    (16u * 1024u * 1024u)                 /* to a client: the times of 1000000 repetitions, too */
#define FRAME_SCHEDULE_PART (32u * 1024u) /* of a schedule, in one message */
#define FRAME_MAX_STRANGER_HEAD 512u      /* before the peer's handshake has been accepted */

struct frame_prefix {
    uint32_t head;
    uint32_t body;
};

void frame_prefix_write(uint8_t out[FRAME_PREFIX_SIZE], uint32_t head, uint32_t body);

/* Reads a prefix and checks it. Returns 0, or -1 with *e naming the length that is over its cap. */
int frame_prefix_read(const uint8_t in[FRAME_PREFIX_SIZE], uint32_t max_head, uint32_t max_body,
                      struct frame_prefix *out, struct error *e);

/* A whole frame without a body: prefix and packed message in one malloc'ed piece of *length bytes
 * that the caller frees. NULL if there is no memory. */
uint8_t *frame_pack(const ProtobufCMessage *message, size_t *length);

/* Takes frames without bodies out of a stream of bytes (control connections). Zero-initialise;
 * release with frame_stream_free(). */
struct frame_stream {
    uint8_t *data;
    size_t length, capacity, taken;
};

/* Room for at least `want` more bytes; read into the result, then call frame_stream_added(). NULL
 * if there is no memory. */
uint8_t *frame_stream_room(struct frame_stream *s, size_t want, size_t *room);
void frame_stream_added(struct frame_stream *s, size_t count);

/* The next whole frame's head: 1 with *head and *length (valid until the next call on s), 0 if more
 * bytes are needed, -1 with *e if the stream is not a sequence of frames without bodies, their heads
 * at most max_head long. */
int frame_stream_next(struct frame_stream *s, uint32_t max_head, const uint8_t **head,
                      size_t *length, struct error *e);
void frame_stream_free(struct frame_stream *s);

#endif
