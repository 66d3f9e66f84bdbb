/* What the one-port algorithms of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for
 * All-to-All Personalized Communication on Multidimensional Tori, share. On a torus of k
 * dimensions, AR1 (ar1.c) runs on logical rings of every k-th node, while each of k neighbours on a
 * line works along another dimension, so that no node waits for a channel.
 *
 * Sizes that are multiples of 2k run directly, others through imaginary nodes. A real node that
 * hosts several nodes may start several messages in a step. So each step is divided into one step
 * for each port and each length of a leg. All messages of such a step go the same way equally far,
 * and no two of them start, or end, at the same node. They can still share channels, because
 * logical rings on different lines of the padded torus may lie on one line of the real one (mt on
 * 6x8: in 4 of 26 steps). */
#pragma once

#include "daemon/lib/schedule/algorithms/imaginary.h"

struct one_port {
    unsigned k;                  /* dimensions of more than one node; 1 if there is none */
    uint8_t dim[TORUS_MAX_DIMS]; /* which they are */
    uint32_t multiple;           /* sizes must be multiples of this, 2k */
    uint32_t ring_steps;         /* steps of AR1 on the longest logical ring */
};

/* Fills *p for a torus, or for the torus to which it is padded. */
void one_port_init(struct one_port *p, const struct torus *t);

/* Whether all dimensions of more than one node wrap. */
bool one_port_wraps(const struct torus *t);

/* Writes the legs of AR1 from coordinate *at to `to` along `dim`, on the logical ring of every
 * `stride`-th node, from `step` on, and sets *at to `to`. Returns how many: at most
 * p->ring_steps. */
uint32_t one_port_ring(const struct one_port *p, const struct torus *padded, unsigned dim,
                       uint32_t stride, uint32_t step, uint32_t *at, uint32_t to, struct leg *legs);

/* The functions `period` and `route` (algorithm.h) of an algorithm whose route on the padded torus
 * is `route`. */
void one_port_period(const struct torus *t, uint32_t *period);
uint32_t one_port_route(const struct torus *t, padded_route_fn *route, uint32_t source,
                        uint32_t destination, struct leg *legs);
