#include "daemon/router/decoder.h"

#include <stdlib.h>
#include <string.h>

/* Heads of data frames are unpacked into this, so that the hot path allocates nothing and has
 * nothing to free; whatever does not fit is malloc'ed. */
struct arena {
    size_t used;
    uint8_t *bytes;
    size_t size;
    bool overflown;
};

static void *arena_alloc(void *context, size_t size)
{
    struct arena *a = context;
    size_t rounded = (size + 15) & ~(size_t)15;

    if (rounded > a->size - a->used) {
        a->overflown = true;
        return malloc(size);
    }
    a->used += rounded;
    return a->bytes + a->used - rounded;
}

static void arena_free(void *context, void *pointer)
{
    struct arena *a = context;
    const uint8_t *p = pointer;

    if (p < a->bytes || p >= a->bytes + a->size)
        free(pointer);
}

void decoder_init(struct decoder *d, uint32_t max_head, uint32_t max_body)
{
    *d = (struct decoder){.max_head = max_head, .max_body = max_body};
}

static void next_frame(struct decoder *d)
{
    free(d->head);
    d->head = NULL;
    d->head_have = 0;
    d->prefix_have = 0;
    d->body_have = 0;
    extents_clear(&d->body);
}

void decoder_free(struct decoder *d)
{
    if (d->message != NULL)
        peer__head__free_unpacked(d->message, NULL);
    d->message = NULL;
    next_frame(d);
    extents_free(&d->body);
}

static int unpacked(const Peer__Head *message, struct error *e)
{
    if (message == NULL)
        return error_set(e, ERROR_PROTOCOL, "frame head that is no message");
    if (message->kind_case == PEER__HEAD__KIND__NOT_SET)
        return error_set(e, ERROR_PROTOCOL, "frame of an unknown kind");
    return 0;
}

/* The usual case: head and body are all there. Nothing is allocated for a data frame. */
static int whole_frame(struct decoder *d, struct slab *slab, const uint8_t *head,
                       decoder_frame_fn frame, void *context, struct error *e)
{
    _Alignas(16) uint8_t bytes[2048];
    struct arena arena = {.bytes = bytes, .size = sizeof bytes};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &arena};
    Peer__Head *message = peer__head__unpack(&allocator, d->prefix.head, head);

    int result = unpacked(message, e);
    if (result == 0 && extents_add(&d->body, slab, head + d->prefix.head, d->prefix.body) != 0)
        result = error_set(e, ERROR_MEMORY, "no memory for a frame");
    if (result == 0)
        result = frame(context, message, &d->body, d->prefix.body, e);
    if (message != NULL && arena.overflown)
        peer__head__free_unpacked(message, &allocator);
    next_frame(d);
    return result;
}

static int head_complete(struct decoder *d, const uint8_t *head, struct error *e)
{
    d->message = peer__head__unpack(NULL, d->prefix.head, head);
    d->head_have = d->prefix.head;
    return unpacked(d->message, e);
}

int decoder_feed(struct decoder *d, struct slab *slab, const uint8_t *data, size_t length,
                 decoder_frame_fn frame, void *context, struct error *e)
{
    while (length > 0) {
        if (d->prefix_have < FRAME_PREFIX_SIZE) {
            size_t n = FRAME_PREFIX_SIZE - d->prefix_have;
            n = n < length ? n : length;
            memcpy(d->prefix_bytes + d->prefix_have, data, n);
            d->prefix_have += (uint32_t)n;
            data += n;
            length -= n;
            if (d->prefix_have < FRAME_PREFIX_SIZE)
                break;
            if (frame_prefix_read(d->prefix_bytes, d->max_head, d->max_body, &d->prefix, e) != 0)
                return -1;
        }
        if (d->head_have == 0 && length >= (size_t)d->prefix.head + d->prefix.body) {
            size_t size = (size_t)d->prefix.head + d->prefix.body;
            if (whole_frame(d, slab, data, frame, context, e) != 0)
                return -1;
            data += size;
            length -= size;
            continue;
        }
        if (d->head_have < d->prefix.head) {
            if (d->head == NULL && length >= d->prefix.head) {
                if (head_complete(d, data, e) != 0)
                    return -1;
                data += d->prefix.head;
                length -= d->prefix.head;
            } else {
                size_t n = d->prefix.head - d->head_have;
                n = n < length ? n : length;
                if (n == 0)
                    break;
                if (d->head == NULL && (d->head = malloc(d->prefix.head)) == NULL)
                    return error_set(e, ERROR_MEMORY, "no memory for a frame");
                memcpy(d->head + d->head_have, data, n);
                d->head_have += (uint32_t)n;
                data += n;
                length -= n;
                if (d->head_have < d->prefix.head)
                    break;
                if (head_complete(d, d->head, e) != 0)
                    return -1;
            }
        }
        uint32_t n = d->prefix.body - d->body_have;
        n = n < length ? n : (uint32_t)length;
        if (extents_add(&d->body, slab, data, n) != 0)
            return error_set(e, ERROR_MEMORY, "no memory for a frame");
        d->body_have += n;
        data += n;
        length -= n;
        if (d->body_have == d->prefix.body) {
            int result = frame(context, d->message, &d->body, d->prefix.body, e);
            peer__head__free_unpacked(d->message, NULL);
            d->message = NULL;
            next_frame(d);
            if (result != 0)
                return -1;
        }
    }
    return 0;
}
