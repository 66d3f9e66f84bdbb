/* What a node knows of messages between two members, for the files of messages.c. */
#pragma once

#include "daemon/torusd/group/message_paths.h"
#include "daemon/torusd/group/messages.h"

enum frame_kind {
    FRAME_ASK = 1, /* receiver: sends `size` bytes with this tag, from `offset` on, until `until` */
    FRAME_GRANT,   /* receiver: sends until `until` */
    FRAME_DATA,    /* sender */
    FRAME_DONE,    /* receiver: has all of it */
    FRAME_STATUS,  /* sender: asks whether the receiver has all of it */
    FRAME_WAITING, /* sender: has a message for which nobody asks */
    FRAME_WANT,    /* receiver: waits for a message with this tag from any member */
    FRAME_OFFER,   /* sender: has reserved a message for the receive that wants one */
    FRAME_WITHDRAW, /* receiver: wants none any more */
    FRAME_LEFT,     /* a member that has left the group: will send none */
    FRAME_END,
};

#define FRAME_BYTES 16384u     /* of a body, at most */
#define NUMBER_ANY 0x80000000u /* in the number of a receive from any member */
#define WAITING_AFTER (250 * MILLISECONDS)
#define WAITING_AGAIN (500 * MILLISECONDS)

/* How far a message has found its counterpart in this attempt. */
enum match {
    MATCH_NONE,
    MATCH_OFFERED, /* a send is reserved for a receive from any member */
    MATCH_MADE,    /* a send answers a receive; the first frame of a receive has arrived */
};

struct message {
    struct message *prev, *next;
    /* A receive from any member: its peer is GROUP_ANY_MEMBER until an offer has arrived. */
    struct member_message what;
    uint64_t name;
    uint32_t number; /* of the receive; of a send: that of the receive with which it is matched */
    uint32_t left;   /* of a receive from any member: how many members will send nothing */
    enum match match;
    uint64_t moved;                /* bytes sent in this attempt, or received */
    uint64_t first;                /* of a receive: granted beside the window */
    uint64_t until;                /* granted */
    uint64_t deadline, waiting_at; /* as router_now() */
};

/* What a receiver asks for, or wants, and this member does not send yet. */
struct ask {
    struct ask *prev, *next;
    struct peer_group_message frame;
};

struct messages {
    struct message *sends, *receives; /* in the order of the calls */
    struct ask *asks;
    uint32_t *next_number; /* by member: the number of the next receive from it */
    uint32_t next_any;     /* that of the next receive from any member, without NUMBER_ANY */
    uint64_t in_flight;    /* bytes of the window that are granted and have not arrived */
};

static inline const struct members *message_members(const struct session *s)
{
    return &s->part->members;
}

/* Returns the tag that the program has given, without the part. */
static inline uint64_t message_tag(uint64_t tag)
{
    return tag & (GROUP_TAGS - 1);
}

static inline struct router *message_router(const struct session *s)
{
    return s->base.set.router;
}

/* --- message_frames.c --- */

/* Returns the messages of this member, which it makes if there are none. On failure returns NULL: memory is short. */
struct messages *messages_of(struct session *s);
/* Returns the message of this number from or to a member, or NULL; of sends only one that answers a receive. */
struct message *message_find(struct message *list, uint32_t peer, uint32_t number);
/* Sends a frame that names members. */
void message_send_frame(struct session *s, const struct peer_group_message *frame,
                        const struct extents *body, uint32_t body_length);
/* Sends a frame about a message to a member, or to its other member. */
void message_say_to(struct session *s, const struct message *x, enum frame_kind kind, uint32_t to);
void message_say(struct session *s, const struct message *x, enum frame_kind kind);
/* Answers a frame that names a receive of its member. */
void message_answer(struct session *s, const struct peer_group_message *frame,
                    enum frame_kind kind);
/* Frees a message of this list; message_end() also tells the program that it is complete. */
void message_free(struct message **list, struct message *x);
void message_end(struct session *s, struct message **list, struct message *x);

/* --- message_send.c: what the sender does --- */

/* Answers what a member asks for and wants with the messages to it, both in their order, until one is only reserved. */
void message_answer_in_order(struct session *s, uint32_t member, uint64_t tag);
/* Sends what the receiver has granted. A message without bytes has one frame. */
void message_send_granted(struct session *s, struct message *x);
/* A message is not reserved any more. */
void message_unreserve(struct session *s, struct message *x);
/* A receiver asks for a message, or wants one. */
void message_ask_heard(struct session *s, const struct peer_group_message *frame);
/* A receiver wants no message any more. */
void message_withdraw_heard(struct session *s, const struct peer_group_message *frame);

/* --- message_receive.c: what the receiver does --- */

/* Further bytes of all messages that are on their way to a member. */
uint64_t message_window(const struct session *s);
/* Returns how many bytes of the window are granted to a receive, and have not arrived. */
uint64_t message_in_window(const struct message *x);
/* Returns from how many members a receive from any member of a part (member_message.part) may receive. */
uint32_t message_count_others(const struct session *s, uint32_t part);
/* Asks for a message, or tells all members that one is wanted. */
void message_ask_for(struct session *s, struct message *x);
/* A member offers a message. It is told if another offer was first. */
void message_offer_heard(struct session *s, const struct peer_group_message *frame);
/* A member that has left the group will send nothing. */
void message_gone_heard(struct session *s, const struct peer_group_message *frame);
/* Takes bytes of a message. Bytes that cannot be the next ones fail the group, because it is not known which node on the
 * way is to blame. */
void message_data_heard(struct session *s, const struct peer_group_message *frame,
                        const struct extents *body, uint32_t length);
/* A sender asks whether a message has arrived. */
void message_status_heard(struct session *s, const struct peer_group_message *frame);
