/* The members of a group, or of a part of it: numbered in the order of their nodes. */
#ifndef TORUSD_GROUP_DATA_MEMBERS_H
#define TORUSD_GROUP_DATA_MEMBERS_H

#include "daemon/schedule/torus.h"
#include "proto/error.h"

struct members {
    uint32_t count, own; /* how many, and this node's number: all nodes, unless some are left out */
    uint32_t *node;      /* by member; NULL: they are the same */
    uint32_t *member;    /* by node, TORUS_NO_NODE: it has been left out; NULL as well */
};

/* Of a torus without the nodes that are `gone` (NULL: of all its nodes), at node `rank`. To be freed, also after
 * an error. Returns 0, or -1 with *e. */
int members_init(struct members *m, uint32_t nodes, uint32_t rank, const bool *gone,
                 struct error *e);
void members_free(struct members *m);

/* The member at a node of the torus, or TORUS_NO_NODE; and where a member is there. */
static inline uint32_t members_at(const struct members *m, uint32_t node)
{
    return m->member != NULL ? m->member[node] : node;
}

static inline uint32_t members_node(const struct members *m, uint32_t member)
{
    return m->node != NULL ? m->node[member] : member;
}

#endif
