/* What goes up and down the tree of an attempt, and along the tree of a node. */
#ifndef TORUSD_EXCHANGE_RECORD_TREE_MESSAGES_H
#define TORUSD_EXCHANGE_RECORD_TREE_MESSAGES_H

#include "daemon/exchange/record/attempt.h"

/* A new wave: all children and this node owe their part. */
void tree_messages_begin_wave(struct attempt *x);
/* A child's part of the current wave has come. Returns 0, or -1 with *e if the child does not owe one. */
int tree_messages_child_part(struct attempt *x, unsigned port, struct error *e);
bool tree_messages_is_child(const struct attempt *x, unsigned port);
/* Each sends nothing over a link that has been down meanwhile. */
void tree_messages_send(struct attempt *x, unsigned port, const struct peer_message *message);
void tree_messages_to_parent(struct attempt *x, const struct peer_message *message);
void tree_messages_to_children(struct attempt *x, const struct peer_message *message);

/* Room for what tree_messages_parents() finds. NULL: no memory. */
struct kept_trees *tree_messages_trees_new(void);
void tree_messages_trees_free(struct kept_trees *trees);
/* The tree of a node over the links that are up (tree_find()), valid until the next call; NULL: it is
 * that of the whole torus, or there is no memory. */
const uint8_t *tree_messages_parents(const struct exchanges *all, uint32_t rank);
/* The port one link nearer to a node: along its tree while the torus is whole, else the shortest way
 * over the links that are up. -1: it is this node, or there is no way. */
int tree_messages_port(const struct exchanges *all, uint32_t rank);
/* Sends to that port, if there is one. */
void tree_messages_towards(struct exchanges *all, uint32_t rank,
                           const struct peer_message *message);

#endif
