#include "proto/frame.h"

#include <stdlib.h>
#include <string.h>

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

uint8_t *frame_pack(const ProtobufCMessage *message, size_t *length)
{
    size_t head = protobuf_c_message_get_packed_size(message);
    uint8_t *frame = malloc(FRAME_PREFIX_SIZE + head);
    if (frame == NULL)
        return NULL;
    frame_prefix_write(frame, (uint32_t)head, 0);
    (void)protobuf_c_message_pack(message, frame + FRAME_PREFIX_SIZE);
    *length = FRAME_PREFIX_SIZE + head;
    return frame;
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

void frame_stream_free(struct frame_stream *s)
{
    free(s->data);
    memset(s, 0, sizeof *s);
}
