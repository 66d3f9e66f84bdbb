/* Frames of messages, and the messages that they name (messages.c). */
#include "daemon/torusd/group/message_state.h"

#include <stdlib.h>
#include <utlist.h>

#include "daemon/torusd/group/message_paths.h"

struct messages *messages_of(struct session *s)
{
    if (s->messages == NULL)
        s->messages = calloc(1, sizeof *s->messages);
    if (s->messages != NULL && s->messages->next_number == NULL)
        s->messages->next_number =
            calloc(message_members(s)->count, sizeof *s->messages->next_number);
    return s->messages != NULL && s->messages->next_number != NULL ? s->messages : NULL;
}

void message_send_frame(struct session *s, const struct peer_group_message *frame,
                        const struct extents *body, uint32_t body_length)
{
    struct peer_group_message named = *frame;

    named.exchange = s->base.set.handle;
    named.from = message_node_of(s, frame->from);
    named.to = message_node_of(s, frame->to);
    message_pass_on(s, &named, body, body_length);
}

void message_say_to(struct session *s, const struct message *x, enum frame_kind kind, uint32_t to)
{
    const struct peer_group_message frame = {
        .kind = kind,
        .from = message_members(s)->own,
        .to = to,
        .number = x->number,
        .tag = x->what.tag,
        .size = x->what.area.size,
        .offset = kind == FRAME_ASK ? x->moved : 0,
        .until = kind == FRAME_ASK || kind == FRAME_GRANT ? x->until : 0,
    };

    message_send_frame(s, &frame, NULL, 0);
}

void message_say(struct session *s, const struct message *x, enum frame_kind kind)
{
    message_say_to(s, x, kind, x->what.peer);
}

void message_answer(struct session *s, const struct peer_group_message *frame, enum frame_kind kind)
{
    struct peer_group_message back = *frame;

    back.kind = kind;
    back.from = frame->to;
    back.to = frame->from;
    message_send_frame(s, &back, NULL, 0);
}

static bool is_from_any(const struct message *x)
{
    return !x->what.sends && (x->number & NUMBER_ANY) != 0;
}

void message_free(struct message **list, struct message *x)
{
    DL_DELETE(*list, x);
    program_memory_unref(x->what.area.memory);
    free(x);
}

void message_end(struct session *s, struct message **list, struct message *x)
{
    const uint64_t bytes = x->what.area.size;
    const struct completion done = {x->name, is_from_any(x) ? x->what.peer : GROUP_ANY_MEMBER};

    if (s->group != NULL)
        group_message_complete(s->group, &done, x->what.sends ? bytes : 0,
                               x->what.sends ? 0 : bytes);
    message_free(list, x);
}

struct message *message_find(struct message *list, uint32_t peer, uint32_t number)
{
    struct message *x = list;

    while (x != NULL && (x->what.peer != peer || x->number != number ||
                         (x->what.sends && x->match != MATCH_MADE)))
        x = x->next;
    return x;
}
