#include "daemon/torusd/router/outgoing.h"

#include <stdlib.h>
#include <xxhash.h>

#define POOL_MOST 256u

struct outgoing *outgoing_new(struct outgoing_pool *pool)
{
    struct outgoing *frame = pool->free;

    if (frame != NULL) {
        pool->free = frame->next;
        pool->count--;
    } else {
        frame = calloc(1, sizeof *frame);
        if (frame == NULL)
            return NULL;
    }
    frame->next = NULL;
    frame->body_length = 0;
    frame->head_length = 0;
    frame->immediate = frame->plain = false;
    frame->head = frame->inline_head;
    return frame;
}

static void destroy_frame(struct outgoing *frame)
{
    extents_free(&frame->body);
    free(frame);
}

void outgoing_free(struct outgoing_pool *pool, struct outgoing *frame)
{
    extents_clear(&frame->body);
    if (frame->head != frame->inline_head)
        free(frame->head);
    frame->head = frame->inline_head;
    if (pool->count >= POOL_MOST) {
        destroy_frame(frame);
        return;
    }
    frame->next = pool->free;
    pool->free = frame;
    pool->count++;
}

void outgoing_pool_close(struct outgoing_pool *pool)
{
    while (pool->free != NULL) {
        struct outgoing *frame = pool->free;
        pool->free = frame->next;
        destroy_frame(frame);
    }
    pool->count = 0;
}

#define AROUND (FRAME_PREFIX_SIZE + HEAD_CHECK_SIZE)
_Static_assert(AROUND + PEER_SHORT <= OUTGOING_INLINE_HEAD,
               "short data needs no memory of its own");

/* Returns room for a head of at most `size` bytes, in the frame or malloc'ed. */
static uint8_t *room_for_head(void *context, size_t size)
{
    struct outgoing *frame = context;

    if (AROUND + size > OUTGOING_INLINE_HEAD) {
        uint8_t *head = malloc(AROUND + size);
        if (head == NULL)
            return NULL;
        frame->head = head;
    }
    return frame->head + FRAME_PREFIX_SIZE;
}

int outgoing_set_message(struct outgoing *frame, const struct peer_message *message)
{
    size_t length = peer_message_write(message, room_for_head, frame);

    if (length == 0)
        return -1;
    frame->head_length = head_check_write(frame->head, (uint32_t)length, frame->body_length);
    return 0;
}

struct outgoing *outgoing_make(struct outgoing_pool *pool, const struct peer_message *message)
{
    struct outgoing *frame = outgoing_new(pool);

    if (frame != NULL && outgoing_set_message(frame, message) != 0) {
        outgoing_free(pool, frame);
        frame = NULL;
    }
    return frame;
}

static size_t frame_memory(const struct outgoing *frame)
{
    return sizeof *frame + frame->head_length + frame->body_length;
}

void outgoing_push(struct outgoing_queue *queue, struct outgoing *frame)
{
    frame->next = NULL;
    if (queue->last != NULL)
        queue->last->next = frame;
    else
        queue->first = frame;
    queue->last = frame;
    queue->bytes += frame_memory(frame);
}

struct outgoing *outgoing_pop(struct outgoing_queue *queue)
{
    struct outgoing *frame = queue->first;

    if (frame != NULL) {
        queue->first = frame->next;
        if (queue->first == NULL)
            queue->last = NULL;
        frame->next = NULL;
        queue->bytes -= frame_memory(frame);
    }
    return frame;
}

void outgoing_clear(struct outgoing_pool *pool, struct outgoing_queue *queue)
{
    struct outgoing *frame;

    while ((frame = outgoing_pop(queue)) != NULL)
        outgoing_free(pool, frame);
}

#define TAG_FIRST 0x8du /* of field 33, fixed32 */
#define TAG_SECOND 0x02u

static uint32_t compute_check(const uint8_t *head, uint32_t length, uint32_t body)
{
    return (uint32_t)XXH3_64bits_withSeed(head, length, (uint64_t)length << 32 | body);
}

uint32_t head_check_write(uint8_t *frame, uint32_t length, uint32_t body)
{
    uint8_t *at = frame + FRAME_PREFIX_SIZE;
    uint32_t check = compute_check(at, length, body);

    frame_prefix_write(frame, length + HEAD_CHECK_SIZE, body);
    at += length;
    *at++ = TAG_FIRST;
    *at++ = TAG_SECOND;
    for (unsigned i = 0; i < 4; i++)
        *at++ = (uint8_t)(check >> 8 * i);
    return FRAME_PREFIX_SIZE + length + HEAD_CHECK_SIZE;
}

bool head_check_holds(const uint8_t *head, uint32_t length, uint32_t body)
{
    uint32_t check = 0;

    if (length < HEAD_CHECK_SIZE)
        return false;
    const uint8_t *at = head + length - HEAD_CHECK_SIZE;
    if (at[0] != TAG_FIRST || at[1] != TAG_SECOND)
        return false;
    for (unsigned i = 0; i < 4; i++)
        check |= (uint32_t)at[2 + i] << 8 * i;
    return check == compute_check(head, length - HEAD_CHECK_SIZE, body);
}
