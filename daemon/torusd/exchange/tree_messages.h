/* Messages up and down the tree of an attempt, and along the tree of any node. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

/* Starts a wave: the parts of all children and of this node are awaited. */
void tree_messages_begin_wave(struct attempt *x);
/* Takes a child's part of the current wave. Returns 0, or -1 with *e if no part of the child is awaited. */
int tree_messages_child_part(struct attempt *x, unsigned port, struct error *e);
/* Whether this port leads to a child in the attempt's tree. */
bool tree_messages_is_child(const struct attempt *x, unsigned port);
void tree_messages_to_parent(struct attempt *x, const struct peer_message *message);
void tree_messages_to_children(struct attempt *x, const struct peer_message *message);

/* Allocates the cache for tree_messages_parents(). Returns NULL if there is no memory. */
struct kept_trees *tree_messages_trees_new(void);
/* Frees the cache. */
void tree_messages_trees_free(struct kept_trees *trees);
/* Returns the tree of a node over the links that are up (tree_find()), valid until the next call. Returns NULL
 * if that is the tree of the whole torus, or if there is no memory. */
const uint8_t *tree_messages_parents(const struct exchanges *exchanges, uint32_t rank);
/* Returns the next hop towards a node: along that node's tree while the torus is whole, otherwise the
 * shortest path over links that are up. -1: it is this node, or there is no path. */
int tree_messages_port(const struct exchanges *exchanges, uint32_t rank);
/* Sends a message towards a node; sends nothing if there is no path. */
void tree_messages_towards(struct exchanges *exchanges, uint32_t rank,
                           const struct peer_message *message);
