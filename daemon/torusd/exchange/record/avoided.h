/* The links and nodes that an attempt avoids, and its tree over the remaining links. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/record/attempt.h"

struct avoided {
    struct damage damage;
    uint8_t *parent; /* by node: the port towards the root (tree_find()) */
    /* NULL: not found yet, not needed any more, or the attempt is a barrier. */
    const struct detour *detour;
    bool
        takes_found; /* "auto" has chosen the found routes of a network in which nothing is avoided */
};

/* Whether the attempt's routes are found for its links, instead of by an algorithm of the registry: if it avoids
 * some; and where the network has other graphs than rings and lines, for `stream`, whether the spec names it or
 * "auto" has chosen it, and for "auto" if the operation is not an exchange. */
bool avoided_has_routes(const struct attempt *x);
/* Returns the name of these routes. */
const char *avoided_routes_name(const struct attempt *x);
/* Whether a spec leaves no other choice than such routes; `whole`: no link or node is avoided. */
bool spec_finds_routes(const struct spec *s, const struct torus *t, bool whole);
/* Makes the attempt avoid these links and nodes, and finds its tree. Takes *d over, also on failure. If they
 * differ from those before, a root must choose its algorithm again. Returns 0, or -1 with *e. */
int avoided_set(struct attempt *x, struct damage *d, struct error *e);
/* Frees what the attempt avoids, and its routes. */
void avoided_drop(struct attempt *x);
/* Frees the routes, and keeps which links and nodes the attempt has avoided. */
void avoided_leave_routes(struct attempt *x);
/* Sets *out to a node's part of the attempt's tree. */
void avoided_tree(const struct attempt *x, uint32_t rank, struct tree_node *out);
/* Returns the child port that leads down to a node in the attempt's tree; -1 for this node and for nodes not
 * below it. */
int avoided_branch(const struct attempt *x, uint32_t node);
/* Finds a node's port towards the root without these links; *port is -1 if there is none. Returns 0, or -1 with
 * *e. */
int avoided_parent(const struct damage *d, uint32_t root, uint32_t rank, int *port,
                   struct error *e);
/* Whether a link that the attempt avoids is up again, between nodes that take part. */
bool avoided_are_restored(const struct attempt *x);
/* Whether the node takes no part. */
bool avoided_is_left_out(const struct attempt *x, uint32_t rank);
/* Returns the number of nodes that take part. */
uint32_t avoided_nodes(const struct attempt *x);
/* Returns how many blocks of other nodes a node that takes part receives. */
uint64_t exchange_receives(const struct attempt *x, uint32_t rank);
/* Whether this port has a link between two nodes that take part. */
bool avoided_joins_members(const struct damage *d, uint32_t rank, unsigned port);
/* Returns the node's ports (bits) whose links the attempt avoids. */
uint32_t avoided_ports(const struct attempt *x, uint32_t rank);
/* Whether a link or node that the attempt needs is down. If so, sets *e to a text that names it. */
bool avoided_fault(const struct attempt *x, struct error *e);
