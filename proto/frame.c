#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RECEIVED 65536u /* bytes at once */

static void put32(uint8_t *out, uint32_t v)
{
    out[0] = (uint8_t)(v >> 24);
    out[1] = (uint8_t)(v >> 16);
    out[2] = (uint8_t)(v >> 8);
    out[3] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | (uint32_t)in[3];
}

void frame_prefix_write(uint8_t out[FRAME_PREFIX_SIZE], uint32_t head, uint32_t body)
{
    put32(out, head);
    put32(out + 4, body);
}

int frame_prefix_read(const uint8_t in[FRAME_PREFIX_SIZE], uint32_t max_head, uint32_t max_body,
                      struct frame_prefix *out, struct error *e)
{
    out->head = get32(in);
    out->body = get32(in + 4);
    if (out->head == 0)
        return error_set(e, ERROR_PROTOCOL, "frame without a head");
    if (out->head > max_head)
        return error_set(e, ERROR_PROTOCOL, "frame head of %u bytes, but at most %u are allowed",
                         out->head, max_head);
    if (out->body > max_body)
        return error_set(e, ERROR_PROTOCOL, "frame body of %u bytes, but at most %u are allowed",
                         out->body, max_body);
    return 0;
}

uint8_t *frame_stream_room(struct frame_stream *s, size_t want, size_t *room)
{
    if (s->taken > 0) {
        memmove(s->data, s->data + s->taken, s->length - s->taken);
        s->length -= s->taken;
        s->taken = 0;
    }
    if (s->capacity - s->length < want) {
        size_t capacity = s->capacity * 2 > s->length + want ? s->capacity * 2 : s->length + want;
        uint8_t *data = realloc(s->data, capacity);
        if (data == NULL)
            return NULL;
        s->data = data;
        s->capacity = capacity;
    }
    *room = s->capacity - s->length;
    return s->data + s->length;
}

void frame_stream_added(struct frame_stream *s, size_t count)
{
    s->length += count;
}

int frame_stream_next(struct frame_stream *s, uint32_t max_head, const uint8_t **head,
                      size_t *length, struct error *e)
{
    struct frame_prefix prefix;
    size_t have = s->length - s->taken;
    if (have < FRAME_PREFIX_SIZE)
        return 0;
    if (frame_prefix_read(s->data + s->taken, max_head, 0, &prefix, e) != 0)
        return -1;
    if (have - FRAME_PREFIX_SIZE < prefix.head)
        return 0;
    *head = s->data + s->taken + FRAME_PREFIX_SIZE;
    *length = prefix.head;
    s->taken += FRAME_PREFIX_SIZE + prefix.head;
    return 1;
}

int frame_stream_put(struct frame_stream *s, const ProtobufCMessage *message)
{
    size_t head = protobuf_c_message_get_packed_size(message), room;
    uint8_t *at = frame_stream_room(s, FRAME_PREFIX_SIZE + head, &room);

    if (at == NULL)
        return -1;
    frame_prefix_write(at, (uint32_t)head, 0);
    (void)protobuf_c_message_pack(message, at + FRAME_PREFIX_SIZE);
    frame_stream_added(s, FRAME_PREFIX_SIZE + head);
    return 0;
}

uint8_t *frame_pack(const ProtobufCMessage *message, size_t *length)
{
    struct frame_stream s = {0};

    if (frame_stream_put(&s, message) != 0)
        return NULL;
    *length = s.length;
    return s.data;
}

bool frame_stream_is_sending(const struct frame_stream *s)
{
    return s->taken < s->length;
}

int frame_stream_send(struct frame_stream *s, int fd, int flags)
{
    while (frame_stream_is_sending(s)) {
        ssize_t n = send(fd, s->data + s->taken, s->length - s->taken, flags | MSG_NOSIGNAL);
        if (n >= 0)
            s->taken += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int frame_stream_receive(struct frame_stream *s, int fd, int flags)
{
    size_t room;
    uint8_t *at = frame_stream_room(s, RECEIVED, &room);
    ssize_t n;

    if (at == NULL)
        return -ENOMEM;
    do
        n = recv(fd, at, room, flags);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    frame_stream_added(s, (size_t)n);
    return n > 0;
}

void frame_stream_free(struct frame_stream *s)
{
    free(s->data);
    memset(s, 0, sizeof *s);
}
