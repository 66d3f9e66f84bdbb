#include "daemon/torusd/router/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/router/outgoing.h"
#include "proto/peer.pb-c.h"

/* A longer head is kept packed while its body arrives, because the body may never arrive. */
#define UNPACKED_MOST (16u * 1024u)

/* Heads of data frames are unpacked into an arena, so that the hot path allocates and frees nothing. Parts
 * that do not fit are malloc'ed, up to the message's limit. */
struct arena {
    size_t used;
    uint8_t *bytes;
    size_t size;
    size_t left; /* bytes that the message may still take */
    bool overflown, exceeded;
};

static void *arena_alloc(void *context, size_t size)
{
    struct arena *a = context;
    size_t rounded = size > 0 ? (size + 15) & ~(size_t)15 : 16;

    if (rounded > a->size - a->used) {
        a->overflown = true;
        a->exceeded = a->exceeded || size > a->left;
        if (a->exceeded)
            return NULL;
        a->left -= size;
        return malloc(size);
    }
    a->used += rounded;
    return a->bytes + a->used - rounded;
}

static void arena_free(void *context, void *pointer)
{
    struct arena *a = context;
    const uint8_t *p = pointer;

    if (a->bytes == NULL || p < a->bytes || p >= a->bytes + a->size)
        free(pointer);
}

void decoder_init(struct decoder *d, uint32_t max_head, uint32_t max_body)
{
    *d = (struct decoder){.max_head = max_head, .max_body = max_body, .max_more = DECODER_MORE};
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

/* Frees the unpacked head, which is not in an arena. */
static void drop_unpacked(struct decoder *d)
{
    struct arena nothing = {0};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &nothing};

    if (d->unpacked != NULL)
        peer__head__free_unpacked(d->unpacked, &allocator);
    d->unpacked = NULL;
}

void decoder_free(struct decoder *d)
{
    drop_unpacked(d);
    next_frame(d);
    extents_free(&d->body);
}

/* Unpacks a head, into the arena's bytes as far as they suffice. Returns 0, or -1 with *e; even then
 * *unpacked may have to be freed. */
static int unpack_with_arena(const struct decoder *d, const uint8_t *head, struct arena *a,
                             Peer__Head **unpacked, struct error *e)
{
    ProtobufCAllocator allocator = {arena_alloc, arena_free, a};

    *unpacked = NULL;
    if (!head_check_holds(head, d->prefix.head, d->prefix.body))
        return error_set(e, ERROR_PROTOCOL, "a frame's head is damaged");
    a->left = (size_t)DECODER_TIMES * d->prefix.head + d->max_more;
    *unpacked = peer__head__unpack(&allocator, d->prefix.head, head);
    if (*unpacked == NULL && a->exceeded)
        return error_set(e, ERROR_PROTOCOL, "a frame's head takes too much memory");
    if (*unpacked == NULL)
        return error_set(e, ERROR_PROTOCOL, "a frame's head is not a message");
    if ((*unpacked)->kind_case == PEER__HEAD__KIND__NOT_SET && !d->skips_unknown)
        return error_set(e, ERROR_PROTOCOL, "a frame has an unknown kind");
    return 0;
}

/* Gives a complete frame, whose body is in d->body, to the user. */
static int give_frame(struct decoder *d, const Peer__Head *unpacked, decoder_frame_fn frame,
                      void *context, struct error *e)
{
    struct peer_message message;
    int result;

    if (unpacked->kind_case == PEER__HEAD__KIND__NOT_SET)
        return 0; /* of a newer minor version */
    if (peer_message_read(unpacked, &message, e) != 0)
        return -1;
    result = frame(context, &message, &d->body, d->prefix.body, e);
    peer_message_free(&message);
    return result;
}

/* The usual case: head and body are complete. Allocates nothing for a data frame. */
static int whole_frame(struct decoder *d, struct slab *slab, const uint8_t *head,
                       decoder_frame_fn frame, void *context, struct error *e)
{
    _Alignas(16) uint8_t bytes[8192];
    struct arena arena = {.bytes = bytes, .size = sizeof bytes};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &arena};
    Peer__Head *unpacked;

    int result = unpack_with_arena(d, head, &arena, &unpacked, e);
    if (result == 0 && extents_add(&d->body, slab, head + d->prefix.head, d->prefix.body) != 0)
        result = error_set(e, ERROR_MEMORY, "out of memory for a frame");
    if (result == 0)
        result = give_frame(d, unpacked, frame, context, e);
    if (unpacked != NULL && arena.overflown)
        peer__head__free_unpacked(unpacked, &allocator);
    next_frame(d);
    return result;
}

/* Received bytes that have not been processed yet. */
struct input {
    struct slab *slab;
    const uint8_t *data;
    size_t length;
};

static void skip_input(struct input *in, size_t length)
{
    in->data += length;
    in->length -= length;
}

/* Completes `size` bytes at `to`, of which the first `have` are there, as far as possible. Returns how many
 * bytes were copied. */
static uint32_t gather_bytes(struct input *in, uint8_t *to, uint32_t have, uint32_t size)
{
    uint32_t n = size - have < in->length ? size - have : (uint32_t)in->length;

    memcpy(to + have, in->data, n);
    skip_input(in, n);
    return n;
}

static int unpack_head(struct decoder *d, const uint8_t *head, struct error *e)
{
    struct arena nothing = {0}; /* everything is malloc'ed, and outlives this call */

    return unpack_with_arena(d, head, &nothing, &d->unpacked, e);
}

/* Takes the head of a frame that has arrived in part. Returns 0, with the head complete or all bytes used
 * up, or -1 with *e. */
static int feed_head(struct decoder *d, struct input *in, struct error *e)
{
    bool keeps = d->prefix.head > UNPACKED_MOST;

    if (!keeps && d->head == NULL && in->length >= d->prefix.head) {
        const uint8_t *head = in->data;
        skip_input(in, d->prefix.head);
        d->head_have = d->prefix.head;
        return unpack_head(d, head, e);
    }
    if (in->length == 0)
        return 0;
    if (d->head == NULL && (d->head = malloc(d->prefix.head)) == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a frame");
    d->head_have += gather_bytes(in, d->head, d->head_have, d->prefix.head);
    return !keeps && d->head_have == d->prefix.head ? unpack_head(d, d->head, e) : 0;
}

/* Takes the body of a frame whose head is complete. */
static int feed_body(struct decoder *d, struct input *in, decoder_frame_fn frame, void *context,
                     struct error *e)
{
    uint32_t missing = d->prefix.body - d->body_have;
    uint32_t n = missing < in->length ? missing : (uint32_t)in->length;

    if (extents_add(&d->body, in->slab, in->data, n) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for a frame");
    d->body_have += n;
    skip_input(in, n);
    if (d->body_have < d->prefix.body)
        return 0;
    if (d->unpacked == NULL && unpack_head(d, d->head, e) != 0)
        return -1;
    int result = give_frame(d, d->unpacked, frame, context, e);
    drop_unpacked(d);
    next_frame(d);
    return result;
}

int decoder_feed(struct decoder *d, struct slab *slab, const uint8_t *data, size_t length,
                 decoder_frame_fn frame, void *context, struct error *e)
{
    struct input in = {slab, data, length};

    while (in.length > 0) {
        if (d->prefix_have < FRAME_PREFIX_SIZE) {
            d->prefix_have += gather_bytes(&in, d->prefix_bytes, d->prefix_have, FRAME_PREFIX_SIZE);
            if (d->prefix_have < FRAME_PREFIX_SIZE)
                break;
            if (frame_prefix_read(d->prefix_bytes, d->max_head, d->max_body, &d->prefix, e) != 0)
                return -1;
        }
        size_t size = (size_t)d->prefix.head + d->prefix.body;
        if (d->head_have == 0 && in.length >= size) {
            const uint8_t *head = in.data;
            skip_input(&in, size);
            if (whole_frame(d, slab, head, frame, context, e) != 0)
                return -1;
            continue;
        }
        if (d->head_have < d->prefix.head && feed_head(d, &in, e) != 0)
            return -1;
        if (d->head_have == d->prefix.head && feed_body(d, &in, frame, context, e) != 0)
            return -1;
    }
    return 0;
}
