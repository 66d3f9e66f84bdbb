/* Carries out an all-to-all broadcast in time, message by message, with the buffers of Yang, Wang:
 * All-to-All Communication, "Broadcasting in a Mesh or Torus" and "All-to-All Broadcast Algorithm".
 *
 * All nodes start at the same time. A message is switched at its source and at every node that it
 * reaches, and is then sent by each port through which it goes on. A channel sends one message at a time, and
 * a switch handles one message at a time. While a channel sends, the next messages are switched.
 *
 * If several messages wait in a buffer, either the one that came first is sent next, or the one with the most hops
 * left; if several have equally many, the one that came first. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/product.h"

#define BROADCAST_RUN_MOST_NODES 1024u
#define BROADCAST_RUN_MOST_TIME UINT64_C(1000000000000) /* 1 s, if the unit is a picosecond */

enum broadcast_queue { BROADCAST_FIFO, BROADCAST_LONGEST_WAY };

/* Where switches are: at each input buffer, as in the paper, where every message is switched, also one
 * that goes no further; or at each output buffer, which switches a message for its own channel. */
enum broadcast_switch { BROADCAST_SWITCH_INPUT, BROADCAST_SWITCH_OUTPUT };

/* Called when a channel starts to send. */
typedef void broadcast_sends_fn(void *context, uint32_t source, uint32_t from, unsigned port);

struct broadcast_model {
    uint64_t startup, switching,
        transmission; /* in the same unit, at most BROADCAST_RUN_MOST_TIME */
    enum broadcast_queue queue;
    enum broadcast_switch place;
    broadcast_sends_fn *sends; /* may be NULL */
    void *context;
};

struct broadcast_report {
    uint64_t delay;    /* until the last message has arrived */
    uint64_t arrivals; /* N(N-1) */
    uint64_t busiest;  /* messages on the busiest channel */
};

/* Returns 0 with *r; or -1 with *e: not an algorithm that sends whole blocks to all nodes, a torus that it
 * does not take, more than BROADCAST_RUN_MOST_NODES nodes, or a time above the limit (ERROR_REFUSED);
 * no memory; or a message that reaches a node twice (ERROR_DAMAGED). */
int broadcast_run(const struct torus *t, const struct algorithm *a, const struct broadcast_model *m,
                  struct broadcast_report *r, struct error *e);

/* Lower bounds on the time of broadcasts. Yang, Wang: All-to-All Communication, theorem 1, for any
 * product of graphs instead of n x n tori and meshes.
 *
 * The model is the paper's: a node may use all its channels at the same time, and has received a whole
 * message before it passes the message on. With the startup time alpha, the switching time delta and
 * the time L * gamma to transmit a message, a broadcast takes at least alpha + delta + b * L * gamma,
 * where b is one of these numbers:
 * - One-to-all: the diameter. If the source is at one end of a longest shortest path, the message
 *   crosses that many channels one after another. This is 2(n-1) on n x n meshes and 2*floor(n/2)
 *   on n x n tori.
 * - All-to-all: the larger of the diameter and ceil((N-1)/d), where d is the number of links of the
 *   node with the fewest. This node receives N-1 messages by d channels. The second number is
 *   ceil((n^2-1)/2) on n x n meshes and ceil((n^2-1)/4) on n x n tori, and never smaller than the
 *   diameter there, except on 2x2. (The paper does not round up, and does not name the diameter.) */

/* In transmissions of a message: b above. 0 on a single node. */
uint32_t broadcast_bound_one_to_all(const struct product *p);
uint32_t broadcast_bound_all_to_all(const struct product *p);
