/* What the one-port algorithms of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for
 * All-to-All Personalized Communication on Multidimensional Tori, share: AR1 runs on logical rings
 * of every k-th node, k being the number of dimensions, so that each node of a line of k neighbours
 * works along another dimension and no node waits for a channel.
 *
 * Sizes that are multiples of 2k run directly, others through imaginary nodes. A real node that
 * hosts several nodes then starts more than one message in a step. So each step is divided into
 * one for each port and each length of a leg: all messages of such a step go the same way
 * equally far, and no two of them start, or end, at one node. They can share channels: logical
 * rings on different lines of the padded torus may be on one line of the real one (mt on 6x8: in
 * 4 of 26 steps). */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_ONE_PORT_H
#define TORUSD_SCHEDULE_ALGORITHMS_ONE_PORT_H

#include "daemon/schedule/algorithms/imaginary.h"

struct one_port {
    unsigned k;                  /* dimensions of more than one node; 1 if there is none */
    uint8_t dim[TORUS_MAX_DIMS]; /* which they are */
    uint32_t multiple;           /* sizes have to be multiples of this, 2k */
    uint32_t ring_steps;         /* steps of AR1 on the longest logical ring */
};

/* Fills *p for a torus, or for the torus that it is padded to. */
void one_port_init(struct one_port *p, const struct torus *t);

/* Whether all dimensions of more than one node wrap. */
bool one_port_wraps(const struct torus *t);

/* AR1 from *at to `to` along `dim`, on the logical ring of every `stride`-th node; sets *at to
 * `to`. At most p->ring_steps legs from `step` on. Returns how many. */
uint32_t one_port_ring(const struct one_port *p, const struct torus *padded, unsigned dim,
                       uint32_t stride, uint32_t step, uint32_t *at, uint32_t to, struct leg *legs);

/* `period` and `route` of an algorithm, the route being `route` on the padded torus. */
void one_port_period(const struct torus *t, uint32_t *period);
uint32_t one_port_route(const struct torus *t, padded_route_fn *route, uint32_t source,
                        uint32_t destination, struct leg *legs);

#endif
