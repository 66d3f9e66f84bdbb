/* Helpers of the tests that write out a paper's rule independently of the implementation. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/schedule/algorithm.h"
#include "tests/support/cmocka.h"

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

/* Moves the block by that many hops, in direction + if they are positive. */
static inline void send(struct block *b, uint32_t step, unsigned dim, int hops)
{
    assert_in_range(b->legs, 0, MOST_LEGS - 1);
    b->leg[b->legs++] = (struct leg){.step = step,
                                     .hops = (uint16_t)(hops > 0 ? hops : -hops),
                                     .dim = (uint8_t)dim,
                                     .direction = hops > 0 ? 1 : -1};
    b->at[dim] = (b->at[dim] + hops + b->size[dim]) % b->size[dim];
}

/* AR1 along `dim`, on a logical ring of every `stride`-th node: Liu, Gu, Ren, Xiong: Efficient and
 * Scalable Algorithms for All-to-All Personalized Communication on Multidimensional Tori, Fig. 2.
 *
 * Readings: in step 2 of AR1, sources are 2i-1-2k and 2i-2k (even carriers), 2i+1+2k and 2i+2+2k
 * (odd carriers). On a ring of two nodes AR1 is one swap, in either direction (the paper's p is
 * larger; its last swap is empty there). Rings of different lengths side by side have their last
 * swaps in the same step, `last`. */
static inline void run_ar1(struct block *b, unsigned dim, int stride, uint32_t step, uint32_t last)
{
    int p = b->size[dim] / stride;
    int s = b->at[dim] / stride, d = b->to[dim] / stride;

    if (p == 2) {
        if (s != d)
            send(b, step, dim, stride);
        return;
    }
    if (s % 2 == 0 && listed(d, s + p / 2, s + p - 1, 1, p))
        send(b, step, dim, -stride);
    else if (s % 2 != 0 && listed(d, s + 1, s + p / 2, 1, p))
        send(b, step, dim, stride);
    for (int k = 0; k <= (p + 3) / 4 - 2; k++) {
        int at = b->at[dim] / stride;
        if (at % 2 == 0 && listed(s, at - 1 - 2 * k, at - 2 * k, 1, p) &&
            listed(d, at + 2, at + (p / 2 - 1) - 2 * k, 1, p))
            send(b, step + 1 + (uint32_t)k, dim, 2 * stride);
        else if (at % 2 != 0 && listed(s, at + 2 * k, at + 1 + 2 * k, 1, p) &&
                 listed(d, at - 1 - (p / 2 - 2) + 2 * k, at - 2, 1, p))
            send(b, step + 1 + (uint32_t)k, dim, -2 * stride);
    }
    int at = b->at[dim] / stride;
    if (at % 2 == 0 && listed(d, at + 1, at + 1, 1, p))
        send(b, last, dim, stride);
    else if (at % 2 != 0 && listed(d, at - 1, at - 1, 1, p))
        send(b, last, dim, -stride);
    assert_int_equal(b->at[dim] / stride, d);
}
