/* Simulates a schedule on a torus, or another network of cables, in time: makes the messages for timed.h, which has the
 * model.
 *
 * Stepped: the messages are the combined messages of the schedule, all blocks that a node sends by one port in one step
 * for the same number of hops. The path of a message is its leg; it pays the startup. It needs the messages that have
 * brought the blocks it is made of, and no others, unless the model has a barrier.
 *
 * Streaming: nobody combines blocks or waits for steps. In an exchange each segment of a block is a message with the
 * whole route as its path. In an allgather a segment of a node's block is a message on each leg of its tree, which needs
 * the one on the leg before. All nodes pay one startup at the beginning.
 *
 * A message is switched before it is sent on: in its channel, which waits meanwhile, or at input or output buffers, as
 * in Yang, Wang: All-to-All Communication, "Broadcasting in a Mesh or Torus". There each input buffer has a switch that
 * handles every message that comes in, also one that goes no further, and a node's own messages one after another; or
 * each output buffer has a switch, for its own channel. While a channel sends, the next messages are switched.
 *
 * Lanes (virtual channels) for wormhole: a channel with two lanes is two channels of half the rate, as if it carried a
 * part of one message, then one of the other, at fixed turns. On each ring a message uses lane 0 until it crosses the link
 * between the last coordinate and the first one, and lane 1 on that link and after it. So messages that stay in their
 * ring, or go through the dimensions in the same order, cannot wait for each other in a circle (Dally and Seitz). On
 * other factors messages use lane 0. The link makes nodes different, so none stands for others.
 *
 * In a streaming exchange a node's own segments wait in the order of (offset, segment). The offset is the destination's
 * coordinates minus the source's, modulo the sizes, as a row-major number. A message's entry is the number of the port by
 * which it comes in. So all nodes of a class (algorithm.h, period) behave alike, and one stands for all, unless channels
 * have different rates. */
#pragma once

#include "client/theory/timed.h"
#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

#define SIMULATE_WORK_MOST (UINT64_C(1) << 28)     /* legs and hops, as work.h estimates them */
#define SIMULATE_TIME_MOST UINT64_C(1000000000000) /* of a startup, a switching, a segment */

enum simulate_place { SIMULATE_IN_CHANNEL, SIMULATE_AT_INPUT, SIMULATE_AT_OUTPUT };

struct simulation {
    struct timed_model timed;
    bool streaming;
    uint64_t switching;         /* of a message at a node */
    uint64_t segment;           /* time in which a channel of the full rate carries a segment */
    enum simulate_place place;  /* not IN_CHANNEL: streaming with TIMED_STORE only */
    const struct damage *rates; /* NULL: all channels have the full rate */
    bool each_node;             /* no node stands for others */
    uint32_t lanes;             /* of a channel: 0 and 1 are one; 2 for TIMED_WORMHOLE only */
    /* Called when a channel takes a message, unless NULL: which node's, or the first node of a message of several
     * blocks, and the channel's node and port. */
    void (*takes)(void *context, uint32_t source, uint32_t node, unsigned port, uint64_t now);
    void *context;
};

/* A message that waits, for people. */
struct simulate_wait {
    uint32_t source, destination; /* of its path */
    uint32_t step;
    uint32_t node; /* whose channel it waits for */
    unsigned port;
};

struct simulate_report {
    struct timed_report timed; /* numbers of messages and channels are not for users */
    uint64_t
        messages; /* of all nodes; a segment of a streaming allgather counts at each node that it reaches */
    uint64_t waited; /* of all nodes */
    /* As timed.wait */
    struct simulate_wait wait[TIMED_CIRCLE_MOST];
};

/* Returns 0 with *r, also if there is a deadlock; or -1 with *e: the algorithm refuses the torus, takes more than
 * SIMULATE_WORK_MOST, or a time is above SIMULATE_TIME_MOST (ERROR_REFUSED); no memory. */
int simulate_schedule(const struct torus *t, const struct algorithm *a, const struct simulation *s,
                      struct simulate_report *r, struct error *e);

/* A streaming exchange in ticks: every channel carries one segment in a tick, a slower channel takes longer in
 * proportion. The segment with the most hops left goes first. Sets *ticks to the time when the last segment arrives,
 * 0 on a torus of one node. Returns 0, or -1 with *e as above; also if the algorithm is not for exchanges. */
int simulate_stream(const struct torus *t, const struct algorithm *a, uint64_t *ticks,
                    struct error *e);

/* The least number of ticks that any execution can take: the larger of the all-port bound in segments and the
 * hops of the longest path. */
uint64_t simulate_bound(const struct torus *t, const struct algorithm *a);
