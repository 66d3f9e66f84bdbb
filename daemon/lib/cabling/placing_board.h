/* The state of one placing: which host stands at which node, and how many mismatches this makes. */
#pragma once

#include "daemon/lib/cabling/network.h"

struct board {
    const struct network *wanted, *seen;
    uint32_t nodes;
    uint32_t *host_at;   /* by node; CABLING_NONE: not placed */
    uint32_t *node_of;   /* by host */
    uint32_t placed;     /* how many */
    uint32_t *beside;    /* by node: how many of its neighbours are placed */
    uint32_t *order;     /* the nodes in the order of placing */
    uint32_t mismatches; /* among the hosts that are placed */
};

int board_make(struct board *b, const struct network *wanted, const struct network *seen,
               struct error *e);
void board_free(struct board *b);

/* The mismatches that a host would add at a node, next to the hosts that are placed. */
uint32_t board_price(const struct board *b, uint32_t node, uint32_t host);

void board_place(struct board *b, uint32_t node, uint32_t host);

/* Takes the last host away, or all hosts. */
void board_undo(struct board *b);
void board_clear(struct board *b);

/* Exchanges pairs of hosts as long as this lessens the mismatches of a full board. Nodes with `fixed` hosts keep them
 * (NULL: there are none). */
void board_improve(struct board *b, const uint32_t *fixed);
