/* Imaginary nodes: how an algorithm whose sizes must be multiples of some number runs on any torus.
 * Every dimension is padded to the next multiple. The added nodes are spread evenly over the ring;
 * each is hosted by the nearest real node before it. Blocks from and to imaginary nodes do not
 * exist. A hop between two nodes of the same host is left out of the route. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* The size to which a dimension is padded. A dimension of 1 has no links and stays 1. */
uint32_t imaginary_size(uint32_t size, uint32_t multiple);

/* Sets the translation period (algorithm.h) on the real torus of an algorithm whose period on the
 * padded torus is `padded_period`, a divisor of `multiple`, in every dimension of more than one
 * node. */
void imaginary_period(const struct torus *t, uint32_t multiple, uint32_t padded_period,
                      uint32_t *period);

/* Writes a route on the padded torus between two nodes given by their coordinates; it goes round
 * each dimension at most once. Returns how many legs. */
typedef uint32_t padded_route_fn(const struct torus *padded, const uint32_t *from,
                                 const uint32_t *to, struct leg *legs);

/* Writes the route of a block: that of `route`, in real coordinates and without legs of no hops.
 * `legs` must have room for the padded route. Returns how many legs. */
uint32_t imaginary_route(const struct torus *t, uint32_t multiple, padded_route_fn *route,
                         uint32_t source, uint32_t destination, struct leg *legs);

/* The route of one block by AR (all_port_rings.c) on a ring of even size, for `ar` and for the logical rings of
 * `at2`. */

struct ring {
    uint32_t nodes;  /* even */
    uint32_t step;   /* the ring's first step */
    uint16_t stride; /* hops on the torus from one node of the ring to the next */
    uint8_t dim;

    uint32_t pause; /* steps between stages 2 and 3 */
    uint32_t late;  /* steps after the first one in which a block for the next node makes its hop */
};

/* The direction in which AR sends a block to the exact opposite of its source; `to` is the
 * destination. */
static inline int ring_tie(uint32_t to)
{
    return to % 2 == 0 ? 1 : -1;
}

/* Steps of an exchange on a ring. */
static inline uint32_t ring_steps(uint32_t nodes)
{
    return nodes / 2;
}

/* The route of one block by AR1 (one_port_rings.c) on a ring of even size, for `ar1` and for the logical rings
 * of the other one-port algorithms. */

/* Steps of an exchange on a ring. Two nodes need a single swap; the paper's formula counts an empty
 * last swap for them. */
static inline uint32_t ring_one_port_steps(uint32_t nodes)
{
    return nodes == 2 ? 1 : (nodes + 3) / 4 + 1;
}

/* Writes the legs from ring node `from` to ring node `to`. The last swap is in step `last`, at the
 * earliest the last of the ring's own ring_one_port_steps(): rings of different lengths that work
 * side by side have it in the same step. Returns how many legs: at most ring_one_port_steps(), 0 if
 * the nodes are the same. */
uint32_t ring_one_port_route(const struct ring *ring, uint32_t from, uint32_t to, uint32_t last,
                             struct leg *legs);

/* Complete exchange on a one-port line of k nodes, for the submeshes of `mt`. A leg over the whole
 * line joins its ends to a ring, along which the blocks move from node to node.
 *
 * Blocks for the next floor(k/2) nodes move in direction +, in floor(k/2) shifts. In a shift every
 * node passes all blocks for nodes beyond to the next node, and the last node passes them to the
 * first, by one leg back over the line. No other leg uses the channels in that direction; the nodes
 * inside the leg relay it cut-through, as a one-port node can while it sends and receives. The
 * blocks for the other ceil(k/2)-1 nodes then move in direction -.
 *
 * This takes k-1 steps and floor(k^2/4) blocks. In each step a node sends one message and receives
 * one, and no two messages share a channel. */

/* Steps of an exchange on a line of k nodes. */
static inline uint32_t line_one_port_steps(uint32_t k)
{
    return k - 1;
}

/* The most legs of a route. */
static inline uint32_t line_one_port_legs(uint32_t k)
{
    return k / 2;
}

/* Writes the legs of a block from node `from` to node `to` of the line, 0..k-1, along `dim`, in an
 * exchange that begins with `step`. Returns how many: at most line_one_port_legs(), 0 if the nodes
 * are the same. */
uint32_t line_one_port_route(uint32_t k, uint8_t dim, uint32_t step, uint32_t from, uint32_t to,
                             struct leg *legs);

/* What the one-port algorithms of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for
 * All-to-All Personalized Communication on Multidimensional Tori, share. On a torus of k
 * dimensions, AR1 runs on logical rings of every k-th node, while each of k neighbours on a
 * line works along another dimension, so that no node waits for a channel.
 *
 * Sizes that are multiples of 2k run directly, others through imaginary nodes. A real node that
 * hosts several nodes may start several messages in a step. So each step is divided into one step
 * for each port and each length of a leg. All messages of such a step go the same way equally far,
 * and no two of them start, or end, at the same node. They can still share channels, because
 * logical rings on different lines of the padded torus may lie on one line of the real one (mt on
 * 6x8: in 4 of 26 steps). */

struct one_port {
    unsigned k;                  /* dimensions of more than one node; 1 if there is none */
    uint8_t dim[TORUS_MAX_DIMS]; /* which they are */
    uint32_t multiple;           /* sizes must be multiples of this, 2k */
    uint32_t ring_steps;         /* steps of AR1 on the longest logical ring */
};

/* Fills *p for a torus, or for the torus to which it is padded. */
void one_port_init(struct one_port *p, const struct torus *t);
