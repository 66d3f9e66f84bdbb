/* What the receiver of a message does: it asks for its bytes, and grants as many as it has room for (messages.c). */
#include "daemon/torusd/group/message_state.h"

#include <string.h>

#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/group/message_paths.h"

/* Bytes of a message that its receiver grants beside the window. Each member may have GROUP_CALLS_MOST messages under
 * way. */
static uint64_t first_bytes(const struct session *s)
{
    const uint64_t bytes = GROUP_MESSAGES_MOST / 2 / GROUP_CALLS_MOST / message_members(s)->count;

    return bytes > 0 ? bytes : 1;
}

uint64_t message_window(const struct session *s)
{
    const uint64_t bytes = GROUP_MESSAGES_MOST / 2 / message_members(s)->count;

    return bytes > 0 ? bytes : 1;
}

/* --- the receiver --- */

uint64_t message_in_window(const struct message *x)
{
    return x->until - (x->moved > x->first ? x->moved : x->first);
}

/* Grants the messages that are arriving shares of the window, in the order of their calls. */
static void grant_more(struct session *s)
{
    struct messages *m = s->messages;
    const uint64_t window = message_window(s);

    for (struct message *x = m->receives; x != NULL && m->in_flight < window; x = x->next) {
        const uint64_t left = x->what.area.size - x->until, room = window - m->in_flight;
        const uint64_t more = left < room ? left : room;
        if (x->match != MATCH_MADE || more == 0 || (more < left && more < window / 4))
            continue;
        x->until += more;
        m->in_flight += more;
        message_say(s, x, FRAME_GRANT);
    }
}

/* Whether a receive from any member of a part (member_message.part) may receive from this one. */
static bool may_send(const struct session *s, uint32_t part, uint32_t member)
{
    const struct torus *t = router_torus(message_router(s));
    uint32_t own[TORUS_MAX_DIMS], other[TORUS_MAX_DIMS];

    if (member == message_members(s)->own)
        return false;
    torus_coordinates(t, router_rank(message_router(s)), own);
    torus_coordinates(t, message_node_of(s, member), other);
    for (unsigned d = 0; d < t->dims && part != 0; d++)
        if ((part >> d & 1) == 0 && own[d] != other[d])
            return false;
    return true;
}

uint32_t message_count_others(const struct session *s, uint32_t part)
{
    uint32_t count = 0;

    for (uint32_t member = 0; member < message_members(s)->count; member++)
        count += may_send(s, part, member);
    return count;
}

/* Sends a frame to all members from which this receive may receive, except one. */
static void say_to_all(struct session *s, const struct message *x, enum frame_kind kind,
                       uint32_t except)
{
    for (uint32_t member = 0; member < message_members(s)->count; member++)
        if (member != except && may_send(s, x->what.part, member))
            message_say_to(s, x, kind, member);
}

void message_ask_for(struct session *s, struct message *x)
{
    const uint64_t first = x->moved + first_bytes(s), size = x->what.area.size;

    if (x->what.peer == GROUP_ANY_MEMBER) {
        x->left = 0;
        say_to_all(s, x, FRAME_WANT, GROUP_ANY_MEMBER);
        return;
    }
    x->until = x->first = first < size ? first : size;
    message_say(s, x, FRAME_ASK);
}

static struct message *find_wanted(const struct session *s, uint32_t number)
{
    return s->messages != NULL ? message_find(s->messages->receives, GROUP_ANY_MEMBER, number)
                               : NULL;
}

void message_offer_heard(struct session *s, const struct peer_group_message *frame)
{
    struct message *x = find_wanted(s, frame->number);

    if (x == NULL || !may_send(s, x->what.part, frame->from))
        return;
    x->what.peer = frame->from;
    message_ask_for(s, x);
    say_to_all(s, x, FRAME_WITHDRAW, frame->from);
}

void message_gone_heard(struct session *s, const struct peer_group_message *frame)
{
    struct message *x = find_wanted(s, frame->number);
    struct error e;

    if (x == NULL || ++x->left < message_count_others(s, x->what.part))
        return;
    (void)error_set(&e, ERROR_USAGE,
                    "all other members have left the group, member %u waits for a message from any "
                    "of them",
                    message_members(s)->own);
    session_fail(s, &e);
}

static void copy_body(uint8_t *to, const struct extents *body)
{
    for (uint32_t i = 0; i < body->count; i++) {
        memcpy(to, body->item[i].data, body->item[i].length);
        to += body->item[i].length;
    }
}

void message_data_heard(struct session *s, const struct peer_group_message *frame,
                        const struct extents *body, uint32_t length)
{
    struct messages *m = s->messages;
    struct message *x = m != NULL ? message_find(m->receives, frame->from, frame->number) : NULL;
    struct error why;

    if (x == NULL || frame->offset != x->moved || length > x->until - x->moved ||
        (length == 0 && x->what.area.size > 0)) {
        (void)error_set(
            &why, ERROR_PROTOCOL,
            "member %u got bytes of a message from member %u for which it has not asked",
            message_members(s)->own, frame->from);
        session_fail(s, &why);
        return;
    }
    if (!s->unchecked && digest_extents(body, length, 0) != frame->digest) {
        (void)error_set(&why, ERROR_DAMAGED, "a message from member %u was damaged on its way",
                        frame->from);
        session_fail(s, &why);
        return;
    }
    if (length > 0)
        copy_body(x->what.area.memory->data + x->what.area.offset + x->moved, body);
    m->in_flight -= message_in_window(x);
    x->moved += length;
    m->in_flight += message_in_window(x);
    x->match = MATCH_MADE;
    if (x->moved == x->what.area.size) {
        message_say(s, x, FRAME_DONE);
        message_end(s, &m->receives, x);
    }
    grant_more(s);
}

/* Whether the program has made a receive of this number from this member, or from any. */
static bool was_made(const struct messages *m, uint32_t from, uint32_t number)
{
    const uint32_t next = (number & NUMBER_ANY) != 0 ? m->next_any : m->next_number[from];
    const uint32_t ago = (next - 1 - number) & ~NUMBER_ANY; /* numbers start again at 0 */

    return ago < NUMBER_ANY / 2;
}

void message_status_heard(struct session *s, const struct peer_group_message *frame)
{
    const struct messages *m = messages_of(s);

    if (m == NULL || !was_made(m, frame->from, frame->number) ||
        message_find(m->receives, frame->from, frame->number) != NULL)
        return; /* it is asked for again */
    message_answer(s, frame, FRAME_DONE);
}
