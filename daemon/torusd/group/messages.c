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
 * When the group restarts, everything on its way is lost. Receivers ask again, from the first byte that they lack, and
 * senders ask about messages that may have arrived (STATUS). */
#include "daemon/torusd/group/messages.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/frame.h"
#include "proto/text.h"

enum frame_kind {
    FRAME_ASK = 1, /* receiver: sends `size` bytes with this tag, from `offset` on, until `until` */
    FRAME_GRANT,   /* receiver: sends until `until` */
    FRAME_DATA,    /* sender */
    FRAME_DONE,    /* receiver: has all of it */
    FRAME_STATUS,  /* sender: asks whether the receiver has all of it */
    FRAME_WAITING, /* sender: has a message for which nobody asks */
};

#define FRAME_BYTES 16384u /* of a body, at most */
#define ASKS_MOST 256u     /* that wait for a message, from one member */
#define WAITING_AFTER (250 * MILLISECONDS)
#define WAITING_AGAIN (500 * MILLISECONDS)

struct message {
    struct message *prev, *next;
    struct member_message what;
    uint64_t name;
    uint32_t number; /* of the receive; of a send: the one that it answers, if `matched` */
    bool matched;    /* a receive: its first frame has arrived in this attempt */
    uint64_t moved;  /* bytes sent in this attempt, or received */
    uint64_t first;  /* of a receive: granted beside the window */
    uint64_t until;  /* granted */
    uint64_t deadline, waiting_at; /* as router_now() */
};

/* What a receiver has asked for, and this member does not send yet. */
struct ask {
    struct ask *prev, *next;
    struct peer_group_message frame;
};

struct messages {
    struct message *sends, *receives; /* in the order of the calls */
    struct ask *asks;
    uint32_t *next_number; /* by member: the number of the next receive from it */
    uint64_t in_flight;    /* bytes of the window that are granted and have not arrived */
    int8_t *towards; /* by node: this node's port on the way there, or -1; NULL: not found yet */
};

static const struct members *members_of(const struct session *s)
{
    return &s->part->members;
}

static struct router *router_of(const struct session *s)
{
    return s->base.set.router;
}

/* Bytes of a message that its receiver grants beside the window. Each member may have GROUP_CALLS_MOST messages under
 * way. */
static uint64_t first_bytes(const struct session *s)
{
    const uint64_t bytes = GROUP_MESSAGES_MOST / 2 / GROUP_CALLS_MOST / members_of(s)->count;

    return bytes > 0 ? bytes : 1;
}

/* Further bytes of all messages that are on their way to a member. */
static uint64_t window_of(const struct session *s)
{
    const uint64_t bytes = GROUP_MESSAGES_MOST / 2 / members_of(s)->count;

    return bytes > 0 ? bytes : 1;
}

/* Returns the messages of this node, which it makes if there are none. A node outside the group only finds paths. On failure
 * returns NULL: memory is short. */
static struct messages *messages_of(struct session *s)
{
    if (s->messages == NULL)
        s->messages = calloc(1, sizeof *s->messages);
    if (s->messages != NULL && s->messages->next_number == NULL && !s->passive)
        s->messages->next_number = calloc(members_of(s)->count, sizeof *s->messages->next_number);
    return s->messages != NULL && (s->passive || s->messages->next_number != NULL) ? s->messages
                                                                                   : NULL;
}

/* Returns the node of a member of the group in the whole torus. Frames name nodes, because not all nodes are members. */
static uint32_t node_of(const struct session *s, uint32_t member)
{
    uint32_t node = 0;

    if (s->is_member == NULL)
        return members_node(members_of(s), member);
    for (uint32_t before = member; before > 0 || !s->is_member[node]; node++)
        before -= s->is_member[node];
    return node;
}

/* Returns the member at a node of the whole torus, or TORUS_NO_NODE. */
static uint32_t member_at(const struct session *s, uint32_t node)
{
    uint32_t member = 0;

    if (node >= router_torus(router_of(s))->nodes || (s->is_member != NULL && !s->is_member[node]))
        return TORUS_NO_NODE;
    if (s->is_member == NULL)
        return members_at(members_of(s), node);
    for (uint32_t other = 0; other < node; other++)
        member += s->is_member[other];
    return member;
}

static void no_memory(struct session *s)
{
    struct error e;

    (void)error_set(&e, ERROR_MEMORY, "out of memory for a message");
    session_fail(s, &e);
}

/* --- the way --- */

static bool is_usable(const struct session *s, uint32_t node, unsigned port)
{
    return torus_neighbour(router_torus(router_of(s)), node, port) != TORUS_NO_NODE &&
           (!s->damaged || (s->damage.dead[node] & 1u << port) == 0);
}

/* Finds the first port of a shortest path to every node. */
static int find_ways(const struct session *s, int8_t *towards)
{
    const struct torus *t = router_torus(router_of(s));
    const uint32_t own = router_rank(router_of(s));
    uint32_t *queue = calloc(t->nodes, sizeof *queue), first = 0, last = 0;

    if (queue == NULL)
        return -1;
    memset(towards, -1, t->nodes);
    queue[last++] = own;
    while (first < last) {
        const uint32_t node = queue[first++];
        for (unsigned port = 0; port < torus_ports(t); port++) {
            const uint32_t next = is_usable(s, node, port) ? torus_neighbour(t, node, port) : own;
            if (next == own || towards[next] >= 0)
                continue;
            towards[next] = node == own ? (int8_t)port : towards[node];
            queue[last++] = next;
        }
    }
    free(queue);
    return 0;
}

/* Returns the port towards a node, or -1: there is none, or no memory. */
static int port_towards(struct session *s, uint32_t node)
{
    const uint32_t nodes = router_torus(router_of(s))->nodes;
    struct messages *m = messages_of(s);

    if (m != NULL && m->towards == NULL) {
        m->towards = calloc(nodes, sizeof *m->towards);
        if (m->towards != NULL && find_ways(s, m->towards) != 0) {
            free(m->towards);
            m->towards = NULL;
        }
    }
    if (m == NULL || m->towards == NULL) {
        no_memory(s);
        return -1;
    }
    return m->towards[node];
}

/* Frees a frame of a member that sends more than it was granted. */
static void refuse_to_pass_on(struct session *s, const struct peer_group_message *frame,
                              struct outgoing *out)
{
    struct error e;

    outgoing_free(router_outgoing(router_of(s)), out);
    (void)error_set(&e, ERROR_MEMORY,
                    "more bytes of messages wait at node %u than members may send, the last from "
                    "node %u",
                    router_rank(router_of(s)), frame->from);
    session_fail(s, &e);
}

/* Sends a frame on its way. */
static void pass_on(struct session *s, const struct peer_group_message *frame,
                    const struct extents *body, uint32_t body_length)
{
    const int port = port_towards(s, frame->to);
    const struct peer_message message = {.kind = PEER_GROUP_MESSAGE, .group_message = *frame};
    struct outgoing_pool *pool = router_outgoing(router_of(s));
    struct outgoing *out;

    if (port < 0 || engine_has_lost(&s->base, (unsigned)port))
        return; /* the group restarts */
    out = outgoing_new(pool);
    for (uint32_t i = 0; out != NULL && body != NULL && i < body->count; i++)
        if (extents_add(&out->body, body->item[i].slab, body->item[i].data, body->item[i].length) !=
            0) {
            outgoing_free(pool, out);
            out = NULL;
        }
    if (out != NULL) {
        out->body_length = body_length;
        out->immediate = true;
        if (outgoing_set_message(out, &message) != 0) {
            outgoing_free(pool, out);
            out = NULL;
        }
    }
    if (out == NULL)
        no_memory(s);
    else if (router_relayed_bytes(router_of(s), (unsigned)port) <= 4 * GROUP_MESSAGES_MOST)
        router_relay(router_of(s), (unsigned)port, out);
    else
        refuse_to_pass_on(s, frame, out);
}

/* Sends a frame that names members. */
static void send_frame(struct session *s, const struct peer_group_message *frame,
                       const struct extents *body, uint32_t body_length)
{
    struct peer_group_message named = *frame;

    named.exchange = s->base.set.handle;
    named.from = node_of(s, frame->from);
    named.to = node_of(s, frame->to);
    pass_on(s, &named, body, body_length);
}

/* Sends a frame about a message to its other member. */
static void say(struct session *s, const struct message *x, enum frame_kind kind)
{
    const struct peer_group_message frame = {
        .kind = kind,
        .from = members_of(s)->own,
        .to = x->what.peer,
        .number = x->number,
        .tag = x->what.tag,
        .size = x->what.area.size,
        .offset = kind == FRAME_ASK ? x->moved : 0,
        .until = kind == FRAME_ASK || kind == FRAME_GRANT ? x->until : 0,
    };

    send_frame(s, &frame, NULL, 0);
}

/* --- ends --- */

static void free_message(struct message **list, struct message *x)
{
    DL_DELETE(*list, x);
    program_memory_unref(x->what.area.memory);
    free(x);
}

static void end_message(struct session *s, struct message **list, struct message *x)
{
    const uint64_t bytes = x->what.area.size;

    if (s->group != NULL)
        group_message_complete(s->group, x->name, x->what.sends ? bytes : 0,
                               x->what.sends ? 0 : bytes);
    free_message(list, x);
}

static struct message *find_number(struct message *list, uint32_t peer, uint32_t number)
{
    struct message *x = list;

    while (x != NULL &&
           (x->what.peer != peer || x->number != number || (x->what.sends && !x->matched)))
        x = x->next;
    return x;
}

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
                                             .from = members_of(s)->own,
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
    send_frame(s, &frame, &body, length);
    if (length > 0)
        slab_unref(item.slab);
    x->moved += length;
    return true;
}

/* Sends what the receiver has granted. A message without bytes has one frame. */
static void send_granted(struct session *s, struct message *x)
{
    const uint64_t size = x->what.area.size;
    bool sent = size > 0 || send_one(s, x, 0);

    while (sent && x->moved < x->until && x->moved < size) {
        const uint64_t left = (x->until < size ? x->until : size) - x->moved;
        sent = send_one(s, x, left < FRAME_BYTES ? (uint32_t)left : FRAME_BYTES);
    }
    if (!sent)
        no_memory(s);
}

/* Answers what a receiver has asked for. */
static void answer(struct session *s, struct message *x, const struct peer_group_message *ask)
{
    struct error e;

    if (ask->size != x->what.area.size) {
        (void)error_set(&e, ERROR_USAGE,
                        "member %u sends member %u a message of %llu %s with tag %u, but member "
                        "%u receives %llu",
                        members_of(s)->own, ask->from, (unsigned long long)x->what.area.size,
                        text_plural(x->what.area.size, "byte", "bytes"), (uint32_t)ask->tag,
                        ask->from, (unsigned long long)ask->size);
        session_fail(s, &e);
        return;
    }
    x->matched = true;
    x->number = ask->number;
    x->moved = ask->offset < ask->size ? ask->offset : ask->size;
    x->until = ask->until;
    x->waiting_at = ROUTER_NEVER;
    send_granted(s, x);
}

static void keep_ask(struct session *s, const struct peer_group_message *frame)
{
    struct messages *m = messages_of(s);
    struct ask *a = m != NULL ? calloc(1, sizeof *a) : NULL;
    uint32_t count = 0;
    struct error e;

    if (a == NULL) {
        no_memory(s);
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

/* A receiver asks for a message. */
static void ask_heard(struct session *s, const struct peer_group_message *frame)
{
    struct message *x =
        s->messages != NULL ? find_number(s->messages->sends, frame->from, frame->number) : NULL;

    if (x == NULL) {
        x = s->messages != NULL ? s->messages->sends : NULL;
        while (x != NULL &&
               (x->matched || x->what.peer != frame->from || x->what.tag != frame->tag))
            x = x->next;
    }
    if (x != NULL)
        answer(s, x, frame);
    else
        keep_ask(s, frame);
}

/* Answers the first of the program's messages for which a receiver has asked already. */
static void answer_kept(struct session *s, struct message *x)
{
    struct messages *m = s->messages;
    struct ask *a = m->asks;

    while (a != NULL && (a->frame.from != x->what.peer || a->frame.tag != x->what.tag))
        a = a->next;
    if (a == NULL)
        return;
    DL_DELETE(m->asks, a);
    answer(s, x, &a->frame);
    free(a);
}

/* --- the receiver --- */

/* Returns how many bytes of the window are granted to a receive, and have not arrived. */
static uint64_t in_window(const struct message *x)
{
    return x->until - (x->moved > x->first ? x->moved : x->first);
}

/* Grants the messages that are arriving shares of the window, in the order of their calls. */
static void grant_more(struct session *s)
{
    struct messages *m = s->messages;
    const uint64_t window = window_of(s);

    for (struct message *x = m->receives; x != NULL && m->in_flight < window; x = x->next) {
        const uint64_t left = x->what.area.size - x->until, room = window - m->in_flight;
        const uint64_t more = left < room ? left : room;
        if (!x->matched || more == 0 || (more < left && more < window / 4))
            continue;
        x->until += more;
        m->in_flight += more;
        say(s, x, FRAME_GRANT);
    }
}

static void ask_for(struct session *s, struct message *x)
{
    const uint64_t first = x->moved + first_bytes(s), size = x->what.area.size;

    x->until = x->first = first < size ? first : size;
    say(s, x, FRAME_ASK);
}

static void copy_body(uint8_t *to, const struct extents *body)
{
    for (uint32_t i = 0; i < body->count; i++) {
        memcpy(to, body->item[i].data, body->item[i].length);
        to += body->item[i].length;
    }
}

/* Takes bytes of a message. Bytes that cannot be the next ones fail the group, because it is not known which node on the
 * way is to blame. */
static void data_heard(struct session *s, const struct peer_group_message *frame,
                       const struct extents *body, uint32_t length)
{
    struct messages *m = s->messages;
    struct message *x = m != NULL ? find_number(m->receives, frame->from, frame->number) : NULL;
    struct error why;

    if (x == NULL || frame->offset != x->moved || length > x->until - x->moved ||
        (length == 0 && x->what.area.size > 0)) {
        (void)error_set(
            &why, ERROR_PROTOCOL,
            "member %u got bytes of a message from member %u for which it has not asked",
            members_of(s)->own, frame->from);
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
    m->in_flight -= in_window(x);
    x->moved += length;
    m->in_flight += in_window(x);
    x->matched = true;
    if (x->moved == x->what.area.size) {
        say(s, x, FRAME_DONE);
        end_message(s, &m->receives, x);
    }
    grant_more(s);
}

static void status_heard(struct session *s, const struct peer_group_message *frame)
{
    const struct messages *m = messages_of(s);
    struct peer_group_message done = *frame;

    if (m == NULL || frame->number >= m->next_number[frame->from] ||
        find_number(m->receives, frame->from, frame->number) != NULL)
        return; /* it is asked for again */
    done.kind = FRAME_DONE;
    done.from = frame->to;
    done.to = frame->from;
    send_frame(s, &done, NULL, 0);
}

/* --- frames --- */

static void left_heard(struct session *s, const struct peer_group_message *frame)
{
    struct error e;

    (void)error_set(&e, ERROR_USAGE, "member %u has left the group, member %u %s it a message",
                    members_of(s)->own, frame->from,
                    frame->kind == FRAME_ASK ? "waits for" : "sends");
    session_fail(s, &e);
}

void messages_leave(struct session *s)
{
    if (s->messages != NULL && s->messages->asks != NULL)
        left_heard(s, &s->messages->asks->frame);
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
    case FRAME_ASK:
    case FRAME_WAITING:
        if (s->left)
            left_heard(s, frame);
        else if (frame->kind == FRAME_ASK)
            ask_heard(s, frame);
        return;
    case FRAME_GRANT:
        x = m != NULL ? find_number(m->sends, frame->from, frame->number) : NULL;
        if (x != NULL && frame->until > x->until) {
            x->until = frame->until;
            send_granted(s, x);
        }
        return;
    case FRAME_DATA:
        data_heard(s, frame, body, body_length);
        return;
    case FRAME_DONE:
        x = m != NULL ? find_number(m->sends, frame->from, frame->number) : NULL;
        if (x != NULL)
            end_message(s, &m->sends, x);
        return;
    case FRAME_STATUS:
        status_heard(s, frame);
        return;
    }
}

int messages_heard(struct session *s, const struct peer_group_message *frame,
                   const struct extents *body, uint32_t body_length, struct error *e)
{
    const uint32_t own = router_rank(router_of(s));
    struct peer_group_message here = *frame;
    struct error why;

    if (frame->from == frame->to || frame->from >= router_torus(router_of(s))->nodes ||
        frame->to >= router_torus(router_of(s))->nodes)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": a message of members that do not exist",
                         s->name);
    if (frame->kind < FRAME_ASK || frame->kind > FRAME_WAITING)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": frame %u of messages does not exist",
                         s->name, frame->kind);
    if (body_length > FRAME_BYTES || (body_length > 0 && frame->kind != FRAME_DATA))
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": a frame of a message is too long",
                         s->name);
    if (frame->to != own && frame->from != own) /* otherwise it would go in circles */
        pass_on(s, frame, body, body_length);
    if (frame->to != own)
        return 0;
    here.from = s->passive ? TORUS_NO_NODE : member_at(s, frame->from);
    if (here.from == TORUS_NO_NODE) {
        (void)error_set(&why, ERROR_PROTOCOL,
                        "node %u sends node %u a message, but not both are members", frame->from,
                        own);
        session_fail(s, &why);
        return 0;
    }
    here.to = members_of(s)->own;
    frame_heard(s, &here, body, body_length);
    return 0;
}

/* --- calls of the program --- */

static int check_made(const struct session *s, const struct member_message *what, struct error *e)
{
    const uint32_t least = router_least_minor(router_of(s));

    if (least < GROUP_MESSAGES_MINOR)
        return error_set(e, ERROR_REFUSED,
                         "messages need version %u.%u of the peer protocol on all nodes, and a "
                         "node has %u.%u: install the same release on all nodes",
                         PROTOCOL_VERSION, GROUP_MESSAGES_MINOR, PROTOCOL_VERSION, least);
    if (what->peer >= members_of(s)->count)
        return error_set(e, ERROR_USAGE, "member %u is not one of the members, which are 0 to %u",
                         what->peer, members_of(s)->count - 1);
    if (what->peer == members_of(s)->own)
        return error_set(e, ERROR_USAGE, "a member cannot send itself a message");
    if (what->area.size > SPEC_BLOCK_MOST)
        return error_set(e, ERROR_USAGE, "a message is larger than 64 TiB");
    return group_check_area(&what->area, what->area.size, what->sends ? "send" : "receive", e);
}

int messages_make(struct session *s, const struct member_message *what, uint64_t name,
                  struct error *e)
{
    const uint64_t now = router_now(router_of(s));
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
        answer_kept(s, x);
        return 0;
    }
    x->number = m->next_number[what->peer]++;
    DL_APPEND(m->receives, x);
    if (s->running)
        ask_for(s, x);
    return 0;
}

/* --- the session --- */

void messages_suspend(struct session *s)
{
    struct messages *m = s->messages;
    struct ask *a, *next;

    if (m == NULL)
        return;
    for (struct message *x = m->sends; x != NULL; x = x->next)
        x->moved = x->until = 0;
    for (struct message *x = m->receives; x != NULL; x = x->next) {
        x->matched = false;
        x->until = x->first = x->moved;
    }
    DL_FOREACH_SAFE (m->asks, a, next) {
        DL_DELETE(m->asks, a);
        free(a);
    }
    free(m->towards);
    m->towards = NULL;
    m->in_flight = 0;
}

void messages_resume(struct session *s)
{
    const struct messages *m = s->messages;

    if (m == NULL)
        return;
    for (struct message *x = m->receives; x != NULL; x = x->next)
        if (!x->matched)
            ask_for(s, x);
    for (const struct message *x = m->sends; x != NULL; x = x->next)
        if (x->matched)
            say(s, x, FRAME_STATUS);
}

bool messages_are_under_way(const struct session *s)
{
    return s->messages != NULL && (s->messages->sends != NULL || s->messages->receives != NULL);
}

void messages_free(struct session *s)
{
    struct messages *m = s->messages;

    if (m == NULL)
        return;
    messages_suspend(s);
    while (m->sends != NULL)
        free_message(&m->sends, m->sends);
    while (m->receives != NULL)
        free_message(&m->receives, m->receives);
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
    struct error e;

    (void)error_set(&e, ERROR_TIMEOUT,
                    "the message of %llu %s %s member %u with tag %u has not arrived in time",
                    (unsigned long long)x->what.area.size,
                    text_plural(x->what.area.size, "byte", "bytes"), x->what.sends ? "to" : "from",
                    x->what.peer, (uint32_t)x->what.tag);
    (void)error_wrap(&e, "member %u", members_of(s)->own);
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
                say(s, x, FRAME_WAITING);
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
        granted += in_window(x);
    }
    return s->messages->in_flight == granted && (granted == 0 || granted <= window_of(s))
               ? 0
               : error_set(e, ERROR_PROTOCOL,
                           "group \"%s\": the window of messages is not as counted", s->name);
}
