/* Records which bytes of blocks have arrived. The source and the destination of a block both know its intervals, so a
 * retry sends only the missing bytes. No I/O. */
#pragma once

#include "daemon/lib/base/intervals.h"

/* Zero-initialise for none. */
struct arrived {
    struct intervals *block; /* by node: of the block from (or for) it */
    uint32_t nodes; /* nodes that `block` has room for; nothing has arrived from the others */
    size_t room;
    size_t spans; /* intervals of all blocks */
};

void arrived_free(struct arrived *a); /* afterwards *a has no spans */

/* Adds the bytes from `begin` to `end` (not included) of a node's block. Returns 0, or -1 if memory is short. */
int arrived_add(struct arrived *a, uint32_t node, uint64_t begin, uint64_t end);

/* Forgets spans until each node's block has at most `most` of them. */
void arrived_trim(struct arrived *a, uint32_t most);

/* Returns what has arrived of a node's block, and where its last span ends; 0: there is none. */
const struct intervals *arrived_of(const struct arrived *a, uint32_t node);
uint64_t arrived_end(const struct arrived *a, uint32_t node);

/* Forgets all spans of a node's block. */
void arrived_drop(struct arrived *a, uint32_t node);
