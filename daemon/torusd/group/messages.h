/* Messages between two members of a group: what one sends, the other receives; see messages.c. */
#pragma once

#include "daemon/lib/base/slab.h"
#include "daemon/torusd/group/state.h"

/* Begins a message of this node's program, which may contain anything. Returns 0, or -1 with *e if it is invalid. */
int messages_make(struct session *s, const struct member_message *what, uint64_t name,
                  struct error *e);
/* Handles a frame from a neighbour, which is for this member, or is passed on. Returns 0, or -1 with *e if the neighbour
 * breaks the protocol. */
int messages_heard(struct session *s, const struct peer_group_message *frame,
                   const struct extents *body, uint32_t body_length, struct error *e);
/* Forgets what was on its way, because the session loses its attempt. */
void messages_suspend(struct session *s);
/* Continues in the session's next attempt; also called in its first one. */
void messages_resume(struct session *s);
/* Whether the program has messages under way. */
bool messages_are_under_way(const struct session *s);
/* Fails the session if other members wait for messages of this member, which has left. */
void messages_leave(struct session *s);
/* Frees all messages, without a word to the program. */
void messages_free(struct session *s);

/* When messages_tick() is due, as router_now(); ROUTER_NEVER: not at all. */
uint64_t messages_deadline(const struct session *s);
void messages_tick(struct session *s, uint64_t now);

/* Checks what is known of messages after an event. Returns 0, or -1 with *e. */
int messages_check(const struct session *s, struct error *e);
