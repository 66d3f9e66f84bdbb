/* What the sender of a message does: it answers receives in their order (messages.c). */
#include "daemon/torusd/group/message_state.h"

#include <stdlib.h>
#include <utlist.h>

#include "daemon/torusd/engine/digest.h"
#include "proto/text.h"

#define ASKS_MOST 256u /* that wait for a message, from one member */

/* --- the sender --- */

static void release_memory(void *context)
{
    program_memory_unref(context);
}

/* Sends one frame of the message. On failure returns false: memory is short. */
static bool send_one(struct session *s, struct message *x, uint32_t length)
{
    const struct program_area *area = &x->what.area;
    const uint8_t *data = length > 0 ? area->memory->data + area->offset + x->moved : NULL;
    struct extent item = {NULL, data, length};
    struct extents body = {&item, length > 0, 1};
    const struct peer_group_message frame = {.kind = FRAME_DATA,
                                             .from = message_members(s)->own,
                                             .to = x->what.peer,
                                             .number = x->number,
                                             .offset = x->moved,
                                             .digest =
                                                 s->unchecked ? 0 : digest_bytes(data, length, 0)};

    if (length > 0) {
        item.slab = slab_without_pool(0, release_memory, area->memory);
        if (item.slab == NULL)
            return false;
        (void)program_memory_ref(area->memory);
    }
    message_send_frame(s, &frame, &body, length);
    if (length > 0)
        slab_unref(item.slab);
    x->moved += length;
    return true;
}

void message_send_granted(struct session *s, struct message *x)
{
    const uint64_t size = x->what.area.size;
    bool sent = size > 0 || send_one(s, x, 0);

    while (sent && x->moved < x->until && x->moved < size) {
        const uint64_t left = (x->until < size ? x->until : size) - x->moved;
        sent = send_one(s, x, left < FRAME_BYTES ? (uint32_t)left : FRAME_BYTES);
    }
    if (!sent)
        message_no_memory(s);
}

/* Answers what a receiver has asked for. */
static void answer(struct session *s, struct message *x, const struct peer_group_message *ask)
{
    struct error e;

    if (ask->size != x->what.area.size) {
        (void)error_set(&e, ERROR_USAGE,
                        "member %u sends member %u a message of %llu %s with tag %llu, but member "
                        "%u receives %llu",
                        message_members(s)->own, ask->from, (unsigned long long)x->what.area.size,
                        text_plural(x->what.area.size, "byte", "bytes"),
                        (unsigned long long)message_tag(ask->tag), ask->from,
                        (unsigned long long)ask->size);
        session_fail(s, &e);
        return;
    }
    x->match = MATCH_MADE;
    x->number = ask->number;
    x->moved = ask->offset < ask->size ? ask->offset : ask->size;
    x->until = ask->until;
    x->waiting_at = ROUTER_NEVER;
    message_send_granted(s, x);
}

static void keep_ask(struct session *s, const struct peer_group_message *frame)
{
    struct messages *m = messages_of(s);
    struct ask *a = m != NULL ? calloc(1, sizeof *a) : NULL;
    uint32_t count = 0;
    struct error e;

    if (a == NULL) {
        message_no_memory(s);
        return;
    }
    for (const struct ask *other = m->asks; other != NULL; other = other->next)
        count += other->frame.from == frame->from;
    if (count >= ASKS_MOST) {
        free(a);
        (void)error_set(&e, ERROR_USAGE, "member %u receives more than %u messages at a time",
                        frame->from, ASKS_MOST);
        session_fail(s, &e);
        return;
    }
    a->frame = *frame;
    DL_APPEND(m->asks, a);
}

/* Reserves a message for a receive from any member. */
static void offer(struct session *s, struct message *x, const struct peer_group_message *want)
{
    x->match = MATCH_OFFERED;
    x->number = want->number;
    x->waiting_at = ROUTER_NEVER;
    message_say(s, x, FRAME_OFFER);
}

void message_unreserve(struct session *s, struct message *x)
{
    x->match = MATCH_NONE;
    x->waiting_at = router_now(message_router(s)) + WAITING_AFTER;
}

static struct ask *find_ask(const struct session *s, uint32_t from, uint64_t tag)
{
    struct ask *a = s->messages->asks;

    while (a != NULL && (a->frame.from != from || a->frame.tag != tag))
        a = a->next;
    return a;
}

static struct message *find_unanswered(const struct session *s, uint32_t to, uint64_t tag)
{
    struct message *x = s->messages->sends;

    while (x != NULL && (x->match == MATCH_MADE || x->what.peer != to || x->what.tag != tag))
        x = x->next;
    return x;
}

void message_answer_in_order(struct session *s, uint32_t member, uint64_t tag)
{
    struct message *x;
    struct ask *a;

    while (s->base.failure.code == ERROR_NONE) {
        x = find_unanswered(s, member, tag);
        a = find_ask(s, member, tag);
        if (x == NULL || a == NULL || x->match == MATCH_OFFERED)
            return;
        DL_DELETE(s->messages->asks, a);
        if (a->frame.kind == FRAME_WANT)
            offer(s, x, &a->frame);
        else
            answer(s, x, &a->frame);
        free(a);
    }
}

/* Returns the message that is reserved for this receive, or NULL. */
static struct message *find_offered(const struct session *s, uint32_t to, uint32_t number)
{
    struct message *x = s->messages != NULL ? s->messages->sends : NULL;

    while (x != NULL && (x->match != MATCH_OFFERED || x->what.peer != to || x->number != number))
        x = x->next;
    return x;
}

void message_ask_heard(struct session *s, const struct peer_group_message *frame)
{
    struct message *x = find_offered(s, frame->from, frame->number);

    if (x == NULL && s->messages != NULL)
        x = message_find(s->messages->sends, frame->from, frame->number);
    if (x != NULL && frame->kind == FRAME_ASK)
        answer(s, x, frame);
    else
        keep_ask(s, frame);
    if (s->base.failure.code == ERROR_NONE)
        message_answer_in_order(s, frame->from, frame->tag);
}

void message_withdraw_heard(struct session *s, const struct peer_group_message *frame)
{
    struct message *x = find_offered(s, frame->from, frame->number);
    struct ask *a = s->messages != NULL ? s->messages->asks : NULL;

    if (x != NULL) {
        message_unreserve(s, x);
        message_answer_in_order(s, frame->from, x->what.tag);
        return;
    }
    while (a != NULL && (a->frame.kind != FRAME_WANT || a->frame.from != frame->from ||
                         a->frame.number != frame->number))
        a = a->next;
    if (a != NULL) {
        DL_DELETE(s->messages->asks, a);
        free(a);
    }
}
