/* Completes a placing from the hosts that are placed already. */
#pragma once

#include "daemon/lib/cabling/placing_board.h"

/* A host that some placed neighbours of a node have cables to. */
struct vote {
    uint32_t node, host;
    uint32_t votes; /* when it was written down; it is out of date if more have come since */
    uint32_t below; /* the vote under it on the same stack, counted from 1; 0: none */
};

#define GROW_STACKS 16u
#define GROW_NO_DETOUR UINT32_MAX

struct grow {
    struct board board;
    uint8_t
        *votes; /* node * nodes + host: cables of the host that lead to neighbours of the node */
    struct vote *vote;
    uint32_t written, room;
    uint32_t barred_node, barred_host; /* are not to be put together, because of a detour */
    uint32_t stack[GROW_STACKS];       /* by number of votes: the last vote on it, counted from 1 */
    uint32_t dirty[GROW_STACKS];       /* the same for votes with mismatches */
};

/* A growth may take a detour: the step of this number is not made as it would be, but in the next best way. */
int grow_make(struct grow *g, const struct network *wanted, const struct network *seen,
              struct error *e);
void grow_free(struct grow *g);

/* Takes all hosts away. */
void grow_clear(struct grow *g);

/* Places a host. Returns 0, or -1 if there is no memory. */
int grow_place(struct grow *g, uint32_t node, uint32_t host);

/* Places all other hosts, or gives up when there are more than `limit` mismatches, or in a larger network too many for
 * the hosts that are placed so far. Returns 1 if all are placed, 0 if
 * it has given up, -1 if there is no memory. */
int grow_on(struct grow *g, uint32_t limit, uint32_t detour);
