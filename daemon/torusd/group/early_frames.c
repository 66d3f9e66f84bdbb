#include "daemon/torusd/group/early_frames.h"

#include <stdlib.h>
#include <string.h>

/* Memory for each byte of a head: a number may have one byte there, and has four unpacked. */
#define NUMBER_BYTES 4u
/* How much memory heads may take, compared with bodies. In a large torus, correct eager calls send many frames
 * with small bodies. */
#define HEADS_TIMES 2u

struct early_frame {
    struct early_frame *next;
    uint32_t number; /* GroupCall.number */
    uint32_t body_length;
    uint64_t head_bytes; /* approximate bytes of memory */
    unsigned port;       /* port of the part */
    struct peer_group_call mark;
    uint8_t *head; /* the encoded message */
    size_t head_length;
    struct slab *slab; /* the body */
};

static const struct peer_group_call *mark_of(const struct peer_message *message)
{
    return message->kind == PEER_STEPPED_DATA ? &message->stepped_data.call
                                              : &message->streamed_data.call;
}

static void release_one(struct early_frame *one)
{
    if (one->slab != NULL)
        slab_unref(one->slab);
    free(one->head);
    free(one);
}

static void free_one(struct part *p, struct early_frame *one)
{
    p->early_bytes -= one->body_length;
    p->early_heads -= one->head_bytes;
    release_one(one);
}

static uint8_t *new_head(void *context, size_t size)
{
    struct early_frame *one = context;

    return one->head = malloc(size);
}

/* Copies a frame, without counting it for a part. Returns NULL if there is no memory. */
static struct early_frame *copy_frame(const struct peer_message *message,
                                      const struct extents *body, uint32_t body_length)
{
    struct early_frame *one = calloc(1, sizeof *one);
    uint32_t at = 0;

    if (one == NULL)
        return NULL;
    one->slab = slab_without_pool(body_length, NULL, NULL);
    one->head_length = peer_message_write(message, new_head, one);
    if (one->slab == NULL || one->head_length == 0) {
        release_one(one);
        return NULL;
    }
    for (uint32_t i = 0; i < body->count; i++) {
        memcpy(one->slab->data + at, body->item[i].data, body->item[i].length);
        at += body->item[i].length;
    }
    one->body_length = body_length;
    one->head_bytes = sizeof *one + NUMBER_BYTES * (uint64_t)one->head_length;
    one->mark = *mark_of(message);
    one->number = one->mark.number;
    return one;
}

int early_frames_keep(struct part *p, unsigned port, const struct peer_message *message,
                      const struct extents *body, uint32_t body_length, struct error *e)
{
    const char *name = p->session->name;
    struct early_frame *one;

    if (body_length > p->limits.early - p->early_bytes)
        return error_set(e, ERROR_MEMORY,
                         "group \"%s\": more than %llu bytes arrived before their calls", name,
                         (unsigned long long)p->limits.early);
    one = copy_frame(message, body, body_length);
    if (one == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an early frame of group \"%s\"", name);
    if (p->early_heads + one->head_bytes > HEADS_TIMES * p->limits.early) {
        release_one(one);
        return error_set(
            e, ERROR_MEMORY,
            "group \"%s\": more frames arrived before their calls than there is memory for", name);
    }
    p->early_heads += one->head_bytes;
    p->early_bytes += body_length;
    one->port = port;
    *(p->early != NULL ? &p->early_last->next : &p->early) = one;
    p->early_last = one;
    return 0;
}

static int give_one(const struct early_frame *one, struct engine *engine, struct error *e)
{
    struct extent item = {one->slab, one->slab->data, one->body_length};
    const struct extents body = {&item, one->body_length > 0, 1};
    struct peer_message message;
    int result;

    if (peer_message_unpack(one->head, one->head_length, &message, NULL) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for an early frame");
    result = engine_frame(engine, one->port, &message, &body, one->body_length, e);
    peer_message_free(&message);
    return result;
}

int early_frames_give(struct part *p, uint32_t number, struct engine *engine, struct error *e)
{
    struct early_frame **at = &p->early, *before = NULL;

    while (*at != NULL) {
        struct early_frame *one = *at;
        if (one->number != number) {
            at = &one->next;
            before = one;
            continue;
        }
        *at = one->next;
        if (p->early_last == one)
            p->early_last = before;
        int result = give_one(one, engine, e);
        free_one(p, one);
        if (result != 0)
            return -1;
    }
    return 0;
}

const struct early_frame *early_frames_next(const struct part *p, const struct early_frame *one,
                                            uint32_t number, struct peer_group_call *mark,
                                            unsigned *port)
{
    for (one = one != NULL ? one->next : p->early; one != NULL; one = one->next)
        if (one->number != STAGE_AGREEMENT && one->number / STAGES_A_CALL == number) {
            *mark = one->mark;
            *port = one->port;
            return one;
        }
    return NULL;
}

const struct peer_group_call *early_frames_beyond(const struct part *p)
{
    for (const struct early_frame *one = p->early; one != NULL; one = one->next) {
        const struct call *c = p->calls;
        if (one->number == STAGE_AGREEMENT)
            continue;
        while (c != NULL && (c->number & CALL_MASK) != one->number / STAGES_A_CALL)
            c = c->next;
        if (c == NULL)
            return &one->mark;
    }
    return NULL;
}

bool early_frames_agree(const struct part *p)
{
    uint64_t bytes = 0;

    for (const struct early_frame *one = p->early; one != NULL; one = one->next) {
        if (one->next == NULL && one != p->early_last)
            return false;
        bytes += one->body_length;
        for (const struct call *c = p->calls; c != NULL; c = c->next)
            for (unsigned stage = 0; stage < STAGES; stage++)
                if (c->attempt.engine[stage] != NULL &&
                    c->attempt.mark[stage].number == one->number)
                    return false; /* the frame should be in this engine */
    }
    return bytes == p->early_bytes && bytes <= p->limits.early;
}

void early_frames_free(struct part *p)
{
    while (p->early != NULL) {
        struct early_frame *one = p->early;
        p->early = one->next;
        free_one(p, one);
    }
}
