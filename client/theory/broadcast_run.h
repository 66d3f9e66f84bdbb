/* Carries out an all-to-all broadcast in time, message by message, with the buffers of Yang, Wang:
 * All-to-All Communication, "Broadcasting in a Mesh or Torus" and "All-to-All Broadcast Algorithm".
 *
 * All nodes start at the same time. A message is switched at its source and at every node that it
 * reaches, and is then sent by each port by which it goes on. A channel sends one message at a time, and
 * a switch handles one message at a time. While a channel sends, the next messages are switched.
 *
 * If several messages wait in a buffer, either the one that came first is sent next, or the one with
 * the most hops left; of several with equally many hops, the one that came first. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

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
