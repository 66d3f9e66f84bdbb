/* On which path frames of messages reach their members (messages.c). */
#pragma once

#include "daemon/lib/base/slab.h"
#include "daemon/torusd/group/state.h"

/* Returns the node of a member of the group in the whole torus. Frames name nodes, because not all nodes are members. */
uint32_t message_node_of(const struct session *s, uint32_t member);
/* Returns the member at a node of the whole torus, or TORUS_NO_NODE. */
uint32_t message_member_at(const struct session *s, uint32_t node);

/* Sends a frame, which names nodes, towards its node. */
void message_pass_on(struct session *s, const struct peer_group_message *frame,
                     const struct extents *body, uint32_t body_length);
/* Fails the session, because memory is short. */
void message_no_memory(struct session *s);
/* Forgets the paths, because the session loses its attempt. */
void message_paths_forget(struct session *s);
