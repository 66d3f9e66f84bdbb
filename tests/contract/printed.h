/* Helpers of the tests that write out a paper's rule independently of the implementation. */
#ifndef TORUSD_TESTS_CONTRACT_PRINTED_H
#define TORUSD_TESTS_CONTRACT_PRINTED_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "daemon/schedule/algorithm.h"

enum { MOST_LEGS = 64, MOST_DIMS = 3 };

/* A block: the node where it is according to the paper, and the legs that brought it there. */
struct block {
    int size[MOST_DIMS], to[MOST_DIMS], at[MOST_DIMS];
    struct leg leg[MOST_LEGS];
    uint32_t legs;
};

/* Whether v is one of first, first + by, ..., last, modulo n. */
static inline bool listed(int v, int first, int last, int by, int n)
{
    for (int i = first; i <= last; i += by)
        if ((i - v) % n == 0)
            return true;
    return false;
}

/* Moves the block by so many hops, in direction + if they are positive. */
static inline void send(struct block *b, uint32_t step, unsigned dim, int hops)
{
    assert_in_range(b->legs, 0, MOST_LEGS - 1);
    b->leg[b->legs++] = (struct leg){.step = step,
                                     .hops = (uint16_t)(hops > 0 ? hops : -hops),
                                     .dim = (uint8_t)dim,
                                     .direction = hops > 0 ? 1 : -1};
    b->at[dim] = (b->at[dim] + hops + b->size[dim]) % b->size[dim];
}

#endif
