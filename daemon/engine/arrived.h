/* Which bytes of blocks have arrived: spans of each, known to both ends of a block, so that what is sent
 * after a link went down is only the rest of it. No I/O. */
#ifndef TORUSD_ENGINE_ARRIVED_H
#define TORUSD_ENGINE_ARRIVED_H

#include <stdint.h>

/* Bytes of the block from (or for) a node, from `begin` up to `end`, which is not one of them. */
struct span {
    uint32_t node;
    uint64_t begin, end;
};

/* Spans by node and place; none touches the next one of its node. Zero-initialise for none. */
struct arrived {
    struct span *span;
    uint32_t count, room;
};

void arrived_free(struct arrived *a); /* and there are none */

/* One more, in any order; empty ones are left out. The other functions may be called after
 * arrived_settle(). Returns 0, or -1 if there is no memory. */
int arrived_add(struct arrived *a, uint32_t node, uint64_t begin, uint64_t end);
/* Puts all in order; those that touch or overlap become one. */
void arrived_settle(struct arrived *a);

/* Forgets spans, so that there are at most so many of each node's block. */
void arrived_trim(struct arrived *a, uint32_t most);

/* How many bytes of a node's block, and where the last of them ends; 0: there are none. */
uint64_t arrived_bytes(const struct arrived *a, uint32_t node);
uint64_t arrived_end(const struct arrived *a, uint32_t node);

/* Nothing of that node's block. */
void arrived_drop(struct arrived *a, uint32_t node);

/* Of what is missing of a block of `size` bytes: where its byte number `at` is, and how many bytes are
 * missing from there on without a gap. Returns how many; 0: not so many are missing. */
uint64_t arrived_missing(const struct arrived *a, uint32_t node, uint64_t size, uint64_t at,
                         uint64_t *begin);

#endif
