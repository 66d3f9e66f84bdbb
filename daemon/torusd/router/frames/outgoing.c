#include "daemon/torusd/router/frames/outgoing.h"

#include <stdlib.h>

#include "daemon/torusd/router/frames/head_check.h"

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
