/* The one simulator of messages in time: any schedule on any network, from the legs of a torus to the lines of a
 * multistage network. It knows no torus and no algorithm; simulate.h, product_run.h and multistage.h make the
 * messages.
 *
 * Model. A channel carries one message at a time. A message crosses a sequence of channels, its path, in order. It
 * starts when all messages that it needs have arrived, and pays the startup on its first channel. On each channel its
 * head takes the channel's switching time, then its data follow, a unit in the channel's time for a unit. The
 * switching mode says when the head asks for the next channel, and when the message gives a channel back:
 * - store-and-forward: it asks for the next one when all of it has crossed, and gives the channel back at that time.
 * - virtual cut-through: the head asks as soon as it has crossed. A node that the head waits in takes in the rest, so
 *   the channel is given back when all data have crossed.
 * - wormhole: as cut-through, but the buffer after each channel holds a part of a message only. Data flow as far as
 *   there is room, in infinitely small parts: by time t, channel i of a path has carried
 *       min over k >= i of (k - i) * buffer + what channel k could have carried since its head crossed it,
 *   so the message gives channel i back when the latest of those sums has come to its size. A head that waits keeps
 *   all channels behind it whose data do not fit in between. On channels of different rates, worm.h follows the data
 *   instead: there a channel also waits for data from a slower one before it. Messages that wait for each other in a circle are a
 *   deadlock.
 *
 * Ports. A node sends at most `ports` messages at a time and receives at most as many. With store-and-forward each
 * channel takes a send at its beginning and a receive at its end. Otherwise a message takes a send at its first node,
 * until its end has left, and a receive at its last one, from its head on; nodes between them relay at no cost.
 *
 * Slots. With store-and-forward and cut-through, the buffer after a channel holds at most `slots` messages that go on.
 * A message takes a slot with the channel, and gives it back when it has left the node.
 *
 * A switch is a channel without data, ports or slots: store-and-forward through it is a server with a buffer before
 * it, as in Yang, Wang: All-to-All Communication.
 *
 * Order. After everything that ends at a time has ended, messages that wait take, in this order, what they wait for if
 * all of it is free: by the queue's rule, then the one that has waited longest, then by the entry of the channel that
 * they came by, then by that of the channel that they wait for, then by number. Nothing else depends on an order, so a
 * run is determined by its messages.
 *
 * With a barrier, the messages of a step start when all of those of earlier steps have arrived.
 *
 * Cost: a few heap operations for each channel of each path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

enum timed_switching { TIMED_STORE, TIMED_CUT_THROUGH, TIMED_WORMHOLE };

enum timed_queue {
    TIMED_FIFO,
    TIMED_LONGEST, /* the most channels left first */
    TIMED_STEP,    /* the lowest step first */
};

/* Times are whole numbers of any unit, so that equal times are equal. */
struct timed_model {
    enum timed_switching switching;
    enum timed_queue queue;
    uint64_t startup;
    uint64_t
        buffer; /* wormhole: the time in which a channel of this `unit` carries what the buffer after one holds */
    uint64_t unit;  /* wormhole: channels with another unit have another rate */
    uint32_t slots; /* 0: any number */
    uint32_t ports; /* 0: any number */
    bool barrier;
};

struct timed_channel {
    uint32_t from, to; /* nodes */
    uint32_t
        entry; /* of messages that come by it to the same node: a different number for each channel, not 0 */
    uint64_t switching, unit;
    bool is_switch;
};

struct timed_message {
    uint32_t units, step;
    uint32_t
        beyond; /* channels that its data still have to cross after its path, at most: for TIMED_LONGEST */
    uint64_t earliest; /* it starts at this time or later */
    bool pays_startup;
};

/* A message that waits for a channel, and one that has what it waits for. */
struct timed_wait {
    uint64_t since;
    uint32_t message, channel, behind;
};

#define TIMED_CIRCLE_MOST 16u

struct timed_report {
    uint64_t time;    /* when the last message has left its last channel that is not a switch */
    uint64_t arrived; /* messages that have arrived: all, unless there is a deadlock */
    uint64_t busiest; /* most units on any channel */
    uint64_t
        waited; /* times that a message found its next channel taken, or no port or slot free */
    struct timed_wait first; /* the first such time, if there was one */
    /* Deadlock: the messages of a circle, each of which waits for the next one, the last for the first. 0: none. The first
     * TIMED_CIRCLE_MOST of them are listed. */
    uint32_t circle;
    struct timed_wait wait[TIMED_CIRCLE_MOST];
};

struct timed;

/* Makes a network without channels or messages. NULL without memory. */
struct timed *timed_new(uint32_t nodes);
void timed_free(struct timed *t); /* NULL does nothing */

/* Add to the network. Channels, and messages, are numbered from 0 in the order of their addition; messages of lower
 * steps come first. A channel is added to the path of the last message. `before` must have arrived before `after`
 * starts. Return 0, or -1 without memory. */
int timed_add_channel(struct timed *t, const struct timed_channel *c);
int timed_add_message(struct timed *t, const struct timed_message *m);
int timed_add_hop(struct timed *t, uint32_t channel);
int timed_add_need(struct timed *t, uint32_t before, uint32_t after);

uint32_t timed_messages(const struct timed *t);
/* For the maker of a message: sees it, and may change it, before the run. */
struct timed_message *timed_message_at(struct timed *t, uint32_t message);
const struct timed_channel *timed_channel_at(const struct timed *t, uint32_t channel);
/* The path of a message: its channels, and how many. */
const uint32_t *timed_path(const struct timed *t, uint32_t message, uint32_t *hops);

/* The units that a channel has carried, after the run. */
uint64_t timed_carried(const struct timed *t, uint32_t channel);

/* Called when a message takes a channel. */
typedef void timed_takes_fn(void *context, uint32_t message, uint32_t channel, uint64_t now);

/* Runs all messages, once. `takes` may be NULL. Returns 0 with *r, also if there is a deadlock; or -1 with *e: no
 * memory, or a time above UINT64_MAX / 4 (ERROR_REFUSED). */
int timed_run(struct timed *t, const struct timed_model *m, timed_takes_fn *takes, void *context,
              struct timed_report *r, struct error *e);
