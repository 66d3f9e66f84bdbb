/* The members of a group or part, numbered in the order of their nodes. */
#pragma once

#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

struct members {
    /* Number of members, and this node's member number; all nodes are members unless some are left out. */
    uint32_t count, own;
    uint32_t *node; /* by member: its node; NULL: the same number */
    /* By node: its member, or TORUS_NO_NODE if it is left out; NULL: the same number. */
    uint32_t *member;
};

/* Sets *m to the nodes of a torus without those that are `gone` (NULL: all nodes), at node `rank`. The caller
 * frees *m, also after an error. Returns 0, or -1 with *e. */
int members_init(struct members *m, uint32_t nodes, uint32_t rank, const bool *gone,
                 struct error *e);
/* Frees what *m holds. */
void members_free(struct members *m);

/* Returns the member at a node of the torus, or TORUS_NO_NODE. */
static inline uint32_t members_at(const struct members *m, uint32_t node)
{
    return m->member != NULL ? m->member[node] : node;
}

static inline uint32_t members_node(const struct members *m, uint32_t member)
{
    return m->node != NULL ? m->node[member] : member;
}
