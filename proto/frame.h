/* Framing, which peers and clients share:
 *
 *     u32 head length | u32 body length | head (protobuf) | body (raw bytes)
 *
 * All numbers are big-endian; both lengths are checked against caps before anything is
 * allocated. The body carries block bytes only, outside protobuf, so that unpacking never copies
 * them. Between peers each head ends with a check of itself and of the lengths
 * (daemon/torusd/router/outgoing.h). */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

/* Neighbours must have the same version, and minor versions that differ by one at most. Nothing that a minor
 * version adds is sent while a node has an older one: see router_least_minor() (daemon/torusd/router/router.h). */
#define PROTOCOL_VERSION 14u
#define PROTOCOL_MINOR 7u

/* What each minor version has added. Those of operations of groups are in proto/group_call.h. */
#define SURVEY_MINOR 1u       /* surveys */
#define SURVEY_TRACE_MINOR 2u /* SURVEY_TRACE */
#define COPY_MINOR 2u         /* copies */
#define CONFIRM_MINOR 2u      /* confirmations of floods */
#define LINK_CLOCK_MINOR 2u   /* times in heartbeats (link_clock.h) */
#define COPY_MORE_MINOR 3u    /* more in requests and records of copies (step_reports.h) */
#define DATA_KIND_MINOR 3u    /* kinds of data in calls of groups */
#define ARRIVALS_MINOR 4u     /* lists of arrivals at barriers (report.h) */
#define COPY_FAST_MINOR 4u    /* digests of chunks that are fast (daemon/torusd/tree/digests.h) */
#define FORWARD_MINOR 4u      /* `forwards` and `quiet` in floods */
#define COPY_BY_MINOR 6u      /* algorithms in requests for copies */
#define RATES_MINOR 6u        /* `rates` in floods, `filler` in heartbeats, `rates` in prepares */
#define MEMBERS_MINOR 7u      /* `members` in specs, `channel` in calls: groups of some nodes */
#define LONG_BODY_MINOR 7u    /* bodies of more than FRAME_SHORT_BODY bytes */
#define GROWS_MINOR 7u        /* `grows` in specs: groups reserve memory as they need it */

/* The version of control.proto.in, and the oldest version of clients that daemons serve. A new field or request does
 * not change it if an older side may ignore it, or refuse it alone. */
#define CONTROL_VERSION 1u
#define CONTROL_OLDEST 1u

#define FRAME_PREFIX_SIZE 8u
#define FRAME_MAX_BODY (272u * 1024u)       /* a relay can pass on frames up to this length */
#define FRAME_SHORT_BODY (64u * 1024u)      /* longer ones are sent on fast links only */
#define FRAME_MAX_HEAD (4u * 1024u * 1024u) /* a report of every node of a large torus fits */
#define FRAME_MAX_REPLY                                                                            \
    (16u * 1024u * 1024u)                 /* to a client: holds the times of 1000000 repetitions */
#define FRAME_SCHEDULE_PART (32u * 1024u) /* bytes of a schedule in one message */
#define FRAME_MAX_STRANGER_HEAD 512u      /* before the peer's handshake has been accepted */

struct frame_prefix {
    uint32_t head;
    uint32_t body;
};

/* Writes a prefix with these lengths, in bytes. */
void frame_prefix_write(uint8_t out[FRAME_PREFIX_SIZE], uint32_t head, uint32_t body);

/* Reads a prefix and checks it. Returns 0, or -1 with *e naming the length that exceeds its cap. */
int frame_prefix_read(const uint8_t in[FRAME_PREFIX_SIZE], uint32_t max_head, uint32_t max_body,
                      struct frame_prefix *out, struct error *e);

/* Packs a whole frame without a body: prefix and message in one malloc'ed piece of *length bytes
 * that the caller frees. Returns NULL if there is no memory. */
uint8_t *frame_pack(const ProtobufCMessage *message, size_t *length);

/* Finds the frames without bodies in a stream of bytes (control connections). Zero-initialise;
 * release with frame_stream_free(). */
struct frame_stream {
    uint8_t *data;
    size_t length, capacity, taken;
};

/* Makes room for at least `want` more bytes. The caller reads into the result, and calls
 * frame_stream_added(). Returns NULL if there is no memory. */
uint8_t *frame_stream_room(struct frame_stream *s, size_t want, size_t *room);
/* Notes that the caller has read `count` bytes into the room. */
void frame_stream_added(struct frame_stream *s, size_t count);

/* The next whole frame's head: returns 1 with *head and *length (valid until the next call on
 * s); 0 if more bytes are needed; -1 with *e if the stream is not a sequence of frames without
 * bodies whose heads are at most max_head long. */
int frame_stream_next(struct frame_stream *s, uint32_t max_head, const uint8_t **head,
                      size_t *length, struct error *e);

/* The same for a socket without a loop. */

/* Packs a message behind the bytes that are to be sent. Returns 0, or -1 without memory. */
int frame_stream_put(struct frame_stream *s, const ProtobufCMessage *message);
/* Whether bytes are to be sent. */
bool frame_stream_is_sending(const struct frame_stream *s);
/* Sends until everything is sent or sending fails; with MSG_DONTWAIT in `flags` also until the socket is full. Returns 0
 * if everything is sent, or the negative of an error number. */
int frame_stream_send(struct frame_stream *s, int fd, int flags);
/* Receives once. Returns 1 if there were bytes, 0 at the end of the stream, or the negative of an error number. */
int frame_stream_receive(struct frame_stream *s, int fd, int flags);

/* Frees what *s holds; it can then be used again. */
void frame_stream_free(struct frame_stream *s);
