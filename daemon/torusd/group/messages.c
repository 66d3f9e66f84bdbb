/* Messages between two members of a group.
 *
 * The receiver asks: its node tells the sender's node which message it waits for (ASK), and up to which byte the sender may
 * send (ASK, GRANT). The sender answers with the first of its messages to that member with this tag that answers no other
 * ASK. So no byte leaves before both have called: it is read from the memory of one program, and written to that of the
 * other. A message is over for the sender when the receiver has said that it has all of it (DONE).
 *
 * Each node passes frames on towards their member on a shortest path over the links that the group uses, so the frames of two
 * members stay in order. Nodes between them hold what has been granted: FIRST_BYTES for each message that is asked for,
 * and, once its first bytes have arrived, a share of the window of its receiver.
 *
 * A member that receives from any member tells all others so (WANT). Each of them reserves its first message with this tag
 * for that receive, and says so (OFFER). The receiver asks the member whose offer arrives first, and the others give up
 * what they have reserved (WITHDRAW). Until then they answer nothing else with a later message of the same tag, so the
 * order of messages is kept.
 *
 * When the group restarts, everything on its way is lost. Receivers ask again, from the first byte that they lack, and
 * senders ask about messages that may have arrived (STATUS).
 *
 * This file has the calls of the program, what becomes of frames, and time; message_send.c and message_receive.c have the
 * two sides, message_frames.c and message_paths.c what both need. */
#include "daemon/torusd/group/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/torusd/group/message_paths.h"
#include "daemon/torusd/group/message_state.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/frame.h"
#include "proto/text.h"

/* --- frames --- */

static void left_heard(struct session *s, const struct peer_group_message *frame)
{
    struct error e;

    (void)error_set(&e, ERROR_USAGE, "member %u has left the group, member %u %s it a message",
                    message_members(s)->own, frame->from,
                    frame->kind == FRAME_ASK ? "waits for" : "sends");
    session_fail(s, &e);
}

void messages_leave(struct session *s)
{
    const struct ask *a = s->messages != NULL ? s->messages->asks : NULL;

    for (; a != NULL && s->base.failure.code == ERROR_NONE; a = a->next)
        if (a->frame.kind == FRAME_WANT)
            message_answer(s, &a->frame, FRAME_LEFT);
        else
            left_heard(s, &a->frame);
}

/* Handles a frame for this member. */
static void frame_heard(struct session *s, const struct peer_group_message *frame,
                        const struct extents *body, uint32_t body_length)
{
    struct messages *m = s->messages;
    struct message *x;

    if (s->base.failure.code != ERROR_NONE)
        return; /* the program has its memory back soon */
    switch (frame->kind) {
    case FRAME_WANT:
        if (s->left)
            message_answer(s, frame, FRAME_LEFT);
        else
            message_ask_heard(s, frame);
        return;
    case FRAME_ASK:
    case FRAME_WAITING:
        if (s->left)
            left_heard(s, frame);
        else if (frame->kind == FRAME_ASK)
            message_ask_heard(s, frame);
        return;
    case FRAME_OFFER:
        message_offer_heard(s, frame);
        return;
    case FRAME_WITHDRAW:
        message_withdraw_heard(s, frame);
        return;
    case FRAME_LEFT:
        message_gone_heard(s, frame);
        return;
    case FRAME_GRANT:
        x = m != NULL ? message_find(m->sends, frame->from, frame->number) : NULL;
        if (x != NULL && frame->until > x->until) {
            x->until = frame->until;
            message_send_granted(s, x);
        }
        return;
    case FRAME_DATA:
        message_data_heard(s, frame, body, body_length);
        return;
    case FRAME_DONE:
        x = m != NULL ? message_find(m->sends, frame->from, frame->number) : NULL;
        if (x != NULL)
            message_end(s, &m->sends, x);
        return;
    case FRAME_STATUS:
        message_status_heard(s, frame);
        return;
    }
}

int messages_heard(struct session *s, const struct peer_group_message *frame,
                   const struct extents *body, uint32_t body_length, struct error *e)
{
    const uint32_t own = router_rank(message_router(s));
    struct peer_group_message here = *frame;
    struct error why;

    if (frame->from == frame->to || frame->from >= router_torus(message_router(s))->nodes ||
        frame->to >= router_torus(message_router(s))->nodes)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": a message of members that do not exist",
                         s->name);
    if (frame->kind < FRAME_ASK || frame->kind >= FRAME_END)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": frame %u of messages does not exist",
                         s->name, frame->kind);
    if (body_length > FRAME_BYTES || (body_length > 0 && frame->kind != FRAME_DATA))
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": a frame of a message is too long",
                         s->name);
    if (frame->to != own && frame->from != own) /* otherwise it would go in circles */
        message_pass_on(s, frame, body, body_length);
    if (frame->to != own)
        return 0;
    here.from = s->passive ? TORUS_NO_NODE : message_member_at(s, frame->from);
    if (here.from == TORUS_NO_NODE) {
        (void)error_set(&why, ERROR_PROTOCOL,
                        "node %u sends node %u a message, but not both are members", frame->from,
                        own);
        session_fail(s, &why);
        return 0;
    }
    here.to = message_members(s)->own;
    frame_heard(s, &here, body, body_length);
    return 0;
}

/* --- calls of the program --- */

static int check_made(const struct session *s, const struct member_message *what, struct error *e)
{
    const uint32_t least = router_least_minor(message_router(s));

    if (least < GROUP_MESSAGES_MINOR)
        return error_set(e, ERROR_REFUSED,
                         "messages need version %u.%u of the peer protocol on all nodes, and a "
                         "node has %u.%u: install the same release on all nodes",
                         PROTOCOL_VERSION, GROUP_MESSAGES_MINOR, PROTOCOL_VERSION, least);
    if (what->peer == GROUP_ANY_MEMBER && !what->sends && message_count_others(s, what->part) == 0)
        return error_set(e, ERROR_USAGE, "there is no other member to receive from");
    if (what->peer >= message_members(s)->count && (what->sends || what->peer != GROUP_ANY_MEMBER))
        return error_set(e, ERROR_USAGE, "member %u is not one of the members, which are 0 to %u",
                         what->peer, message_members(s)->count - 1);
    if (what->peer == message_members(s)->own)
        return error_set(e, ERROR_USAGE, "a member cannot send itself a message");
    if (what->area.size > SPEC_BLOCK_MOST)
        return error_set(e, ERROR_USAGE, "a message is larger than 64 TiB");
    return group_check_area(&what->area, what->area.size, what->sends ? "send" : "receive", e);
}

int messages_make(struct session *s, const struct member_message *what, uint64_t name,
                  struct error *e)
{
    const uint64_t now = router_now(message_router(s));
    struct messages *m;
    struct message *x;

    if (check_made(s, what, e) != 0)
        return -1;
    m = messages_of(s);
    x = m != NULL ? calloc(1, sizeof *x) : NULL;
    if (x == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a message");
    x->what = *what;
    x->name = name;
    if (x->what.area.memory != NULL)
        (void)program_memory_ref(x->what.area.memory);
    x->deadline = what->timeout_ns > 0 && what->timeout_ns < ROUTER_NEVER - now
                      ? now + what->timeout_ns
                      : ROUTER_NEVER;
    x->waiting_at = what->sends ? now + WAITING_AFTER : ROUTER_NEVER;
    if (what->sends) {
        DL_APPEND(m->sends, x);
        message_answer_in_order(s, x->what.peer, x->what.tag);
        return 0;
    }
    x->number = what->peer == GROUP_ANY_MEMBER ? NUMBER_ANY | m->next_any++
                                               : m->next_number[what->peer]++ & ~NUMBER_ANY;
    DL_APPEND(m->receives, x);
    if (s->running)
        message_ask_for(s, x);
    return 0;
}

/* --- the session --- */

void messages_suspend(struct session *s)
{
    struct messages *m = s->messages;
    struct ask *a, *next;

    message_paths_forget(s);
    if (m == NULL)
        return;
    for (struct message *x = m->sends; x != NULL; x = x->next) {
        x->moved = x->until = 0;
        if (x->match == MATCH_OFFERED)
            message_unreserve(s, x);
    }
    for (struct message *x = m->receives; x != NULL; x = x->next) {
        x->match = MATCH_NONE;
        x->until = x->first = x->moved;
    }
    DL_FOREACH_SAFE (m->asks, a, next) {
        DL_DELETE(m->asks, a);
        free(a);
    }
    m->in_flight = 0;
}

void messages_resume(struct session *s)
{
    const struct messages *m = s->messages;

    if (m == NULL)
        return;
    for (struct message *x = m->receives; x != NULL; x = x->next)
        if (x->match == MATCH_NONE)
            message_ask_for(s, x);
    for (const struct message *x = m->sends; x != NULL; x = x->next)
        if (x->match == MATCH_MADE)
            message_say(s, x, FRAME_STATUS);
}

bool messages_are_under_way(const struct session *s)
{
    return s->messages != NULL && (s->messages->sends != NULL || s->messages->receives != NULL);
}

void messages_free(struct session *s)
{
    struct messages *m = s->messages;

    messages_suspend(s);
    if (m == NULL)
        return;
    while (m->sends != NULL)
        message_free(&m->sends, m->sends);
    while (m->receives != NULL)
        message_free(&m->receives, m->receives);
    free(m->next_number);
    free(m);
    s->messages = NULL;
}

/* --- time --- */

uint64_t messages_deadline(const struct session *s)
{
    uint64_t at = ROUTER_NEVER;

    if (s->messages == NULL)
        return at;
    for (const struct message *x = s->messages->sends; x != NULL; x = x->next) {
        at = x->deadline < at ? x->deadline : at;
        at = x->waiting_at < at ? x->waiting_at : at;
    }
    for (const struct message *x = s->messages->receives; x != NULL; x = x->next)
        at = x->deadline < at ? x->deadline : at;
    return at;
}

static void fail_late(struct session *s, const struct message *x)
{
    char whom[24];
    struct error e;

    if (x->what.peer == GROUP_ANY_MEMBER)
        (void)snprintf(whom, sizeof whom, "any member");
    else
        (void)snprintf(whom, sizeof whom, "member %u", x->what.peer);
    (void)error_set(
        &e, ERROR_TIMEOUT, "the message of %llu %s %s %s with tag %llu has not arrived in time",
        (unsigned long long)x->what.area.size, text_plural(x->what.area.size, "byte", "bytes"),
        x->what.sends ? "to" : "from", whom, (unsigned long long)message_tag(x->what.tag));
    (void)error_wrap(&e, "member %u", message_members(s)->own);
    session_fail(s, &e);
}

void messages_tick(struct session *s, uint64_t now)
{
    struct message *lists[2] = {NULL, NULL};

    if (s->messages != NULL) {
        lists[0] = s->messages->sends;
        lists[1] = s->messages->receives;
    }
    for (unsigned i = 0; i < 2; i++)
        for (struct message *x = lists[i]; x != NULL && s->base.failure.code == ERROR_NONE;
             x = x->next) {
            if (now >= x->deadline)
                fail_late(s, x);
            if (now >= x->waiting_at) {
                x->waiting_at = now + WAITING_AGAIN;
                message_say(s, x, FRAME_WAITING);
            }
        }
}

int messages_check(const struct session *s, struct error *e)
{
    uint64_t granted = 0;

    if (s->messages == NULL)
        return 0;
    for (const struct message *x = s->messages->receives; x != NULL; x = x->next) {
        if (x->moved > x->until || x->until > x->what.area.size)
            return error_set(e, ERROR_PROTOCOL, "group \"%s\": a message has got more than granted",
                             s->name);
        granted += message_in_window(x);
    }
    return s->messages->in_flight == granted && (granted == 0 || granted <= message_window(s))
               ? 0
               : error_set(e, ERROR_PROTOCOL,
                           "group \"%s\": the window of messages is not as counted", s->name);
}
