/* Links that are out of order, which an attempt avoids, and nodes, which it leaves out; its tree over the others. */
#ifndef TORUSD_EXCHANGE_RECORD_AVOIDED_H
#define TORUSD_EXCHANGE_RECORD_AVOIDED_H

#include "daemon/exchange/record/attempt.h"
#include "daemon/schedule/damage.h"

struct avoided {
    struct damage damage;
    uint8_t *parent;             /* by node: its port towards the root (tree_find()) */
    const struct detour *detour; /* NULL: not found yet, not needed any more, or for a barrier */
};

/* The attempt has routes that were made for what it avoids, not an algorithm's of the registry. */
bool avoided_has_routes(const struct attempt *x);
/* From now on it avoids these links, and has its tree; takes *d over, also on failure. If they are
 * others than before, a root's algorithm has to be chosen again. Returns 0, or -1 with *e. */
int avoided_set(struct attempt *x, struct damage *d, struct error *e);
void avoided_drop(struct attempt *x);
/* Only what it has avoided is of interest any more. */
void avoided_leave_routes(struct attempt *x);
/* A node's part of its tree. */
void avoided_tree(const struct attempt *x, uint32_t rank, struct tree_node *out);
/* The child port of its tree that a node is below, -1 for this node and for those that are not below it. */
int avoided_branch(const struct attempt *x, uint32_t node);
/* The node's port towards the root, over other links than these; -1: none. Returns 0, or -1 with *e. */
int avoided_parent(const struct damage *d, uint32_t root, uint32_t rank, int *port,
                   struct error *e);
/* Whether a link that it avoids is up, between nodes that take part. */
bool avoided_are_restored(const struct attempt *x);
/* Whether the node takes no part, and how many do. */
bool avoided_is_gone(const struct attempt *x, uint32_t rank);
uint32_t avoided_nodes(const struct attempt *x);
/* How many blocks of others a node that takes part receives. */
uint64_t exchange_takes(const struct attempt *x, uint32_t rank);
/* Whether there is a link at this port, between two nodes that take part. */
bool avoided_is_between_left(const struct damage *d, uint32_t rank, unsigned port);
/* The node's ports (bits) whose links it avoids. */
uint32_t avoided_ports(const struct attempt *x, uint32_t rank);
/* Whether a link or node is down that it needs; then *e says which. */
bool avoided_fault(const struct attempt *x, struct error *e);

#endif
