#include "daemon/group/record/early_frames.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 4u /* in memory, of what may be one byte of a head */
/* What heads may take, in terms of what bodies may: honest frames of eager calls have small bodies, and are
 * many where a torus is large. */
#define HEADS_TIMES 2u

struct early_frame {
    struct early_frame *next;
    uint32_t number; /* GroupCall.number */
    uint32_t body_length;
    uint64_t head_bytes; /* of memory, about */
    unsigned port;       /* of the part */
    Peer__GroupCall mark;
    Peer__Head *head;
    struct slab *slab; /* the body */
};

static const Peer__GroupCall *mark_of(const Peer__Head *head)
{
    return head->kind_case == PEER__HEAD__KIND_STEPPED_DATA ? head->stepped_data->call
                                                            : head->streamed_data->call;
}

static void free_one(struct part *p, struct early_frame *one)
{
    p->early_bytes -= one->body_length;
    p->early_heads -= one->head_bytes;
    if (one->slab != NULL)
        slab_unref(one->slab);
    if (one->head != NULL)
        peer__head__free_unpacked(one->head, NULL);
    free(one);
}

static Peer__Head *copy_head(const Peer__Head *head, size_t size)
{
    uint8_t *bytes = malloc(size);
    Peer__Head *copy = NULL;

    if (bytes != NULL) {
        (void)peer__head__pack(head, bytes);
        copy = peer__head__unpack(NULL, size, bytes);
    }
    free(bytes);
    return copy;
}

int early_frames_keep(struct part *p, unsigned port, const Peer__Head *head,
                      const struct extents *body, uint32_t body_length, struct error *e)
{
    const char *name = p->session->name;
    struct early_frame *one;
    size_t head_size = peer__head__get_packed_size(head);
    uint64_t head_bytes = sizeof *one + NUMBER_BYTES * (uint64_t)head_size;
    uint32_t at = 0;

    if (body_length > p->limits.early - p->early_bytes)
        return error_set(e, ERROR_MEMORY,
                         "group \"%s\": more than %llu bytes have come before their calls", name,
                         (unsigned long long)p->limits.early);
    if (p->early_heads + head_bytes > HEADS_TIMES * p->limits.early)
        return error_set(
            e, ERROR_MEMORY,
            "group \"%s\": more frames have come before their calls than there is memory "
            "for",
            name);
    one = calloc(1, sizeof *one);
    if (one == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a frame of group \"%s\"", name);
    one->head = copy_head(head, head_size);
    one->slab = slab_lone(body_length, NULL, NULL);
    one->head_bytes = head_bytes;
    p->early_heads += head_bytes;
    p->early_bytes += body_length;
    one->body_length = body_length;
    if (one->head == NULL || one->slab == NULL) {
        free_one(p, one);
        return error_set(e, ERROR_MEMORY, "out of memory for a frame of group \"%s\"", name);
    }
    for (uint32_t i = 0; i < body->count; i++) {
        memcpy(one->slab->data + at, body->item[i].data, body->item[i].length);
        at += body->item[i].length;
    }
    one->port = port;
    one->mark = *mark_of(head);
    one->number = one->mark.number;
    *(p->early != NULL ? &p->early_last->next : &p->early) = one;
    p->early_last = one;
    return 0;
}

int early_frames_give(struct part *p, uint32_t number, struct engine *engine, struct error *e)
{
    struct early_frame **at = &p->early, *before = NULL;

    while (*at != NULL) {
        struct early_frame *one = *at;
        struct extent item = {one->slab, one->slab->data, one->body_length};
        const struct extents body = {&item, one->body_length > 0, 1};
        if (one->number != number) {
            at = &one->next;
            before = one;
            continue;
        }
        *at = one->next;
        if (p->early_last == one)
            p->early_last = before;
        int result = engine_frame(engine, one->port, one->head, &body, one->body_length, e);
        free_one(p, one);
        if (result != 0)
            return -1;
    }
    return 0;
}

const Peer__GroupCall *early_frames_differ(const struct part *p, uint32_t number,
                                           uint32_t signature, unsigned *port)
{
    for (const struct early_frame *one = p->early; one != NULL; one = one->next)
        if (one->number != STAGE_AGREEMENT && one->number / STAGES_A_CALL == number &&
            one->mark.signature != signature) {
            *port = one->port;
            return &one->mark;
        }
    return NULL;
}

const Peer__GroupCall *early_frames_beyond(const struct part *p)
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
                    return false; /* its engine waits for it */
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
