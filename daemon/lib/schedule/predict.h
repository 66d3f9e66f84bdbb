/* The costs of a step, a message and a byte on links, measured or assumed. */
#pragma once

#include <stdint.h>

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

struct predict_costs {
    double step;             /* seconds that a short message takes from one end of a link to the
                              * other */
    double message;          /* seconds that each message on a link costs each of its ends */
    double bytes_per_second; /* block bytes on a link, each way, while all links are busy */
    uint32_t frame;          /* bytes of a long message for which a relay waits before it passes
                              * them on (relay_frame()); 0 if links pass that many at once. Not
                              * measured */
    uint64_t burst;          /* bytes that a link passes at once after a pause. Not measured */
};

/* The costs that are assumed if nothing has been measured. link_mbit: nominal rate of a link, 0 if
 * unknown. nodes_per_processor: at least 1; if nodes share processors (an emulated torus), a
 * processor handles the messages of all its nodes one after another. */
struct predict_costs predict_default_costs(double link_mbit, double nodes_per_processor);

/* Sizes of the frames that relays pass on. A relay passes on whole frames, so each further hop
 * delays a message by the time that its first frame takes on a link. Pure arithmetic. */

#define RELAY_FRAME_MOST (16u * 1024u) /* bytes of blocks in a frame */

/* Bytes of blocks in a frame of a long message, at most RELAY_FRAME_MOST. On slow links a frame is
 * one packet, so that hops cost little. On faster links frames are longer, so that processors spend
 * only a small part of the time on frames that these take on the links. Frames are not shorter than
 * what a link passes at once.
 *
 * link_mbit: nominal rate, 0 if unknown. nodes_per_processor: at least 1, see predict_default_costs().
 * link_burst: bytes that a link passes at once after a pause; 0 on a cable. */
uint32_t relay_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst);

/* Bytes of blocks in a frame of a message of `message_bytes`, where frames of long messages have at
 * least `frame` bytes. Frames are longer if the message would have very many. */
uint32_t relay_frame_of(uint32_t frame, uint64_t message_bytes);

/* Predicts how long an operation takes, and so which algorithm is the fastest, for blocks of a
 * given size on links that have been measured. The counts of a schedule (steps, messages, blocks on
 * the busiest channel) are priced with the costs of a step, a message and a byte; nothing else is
 * known about a torus. The cost models of the papers, with the parameters of their machines, are in
 * client/theory/cost.h. */

/* The counts of an algorithm on a torus, which do not depend on the size of the blocks. */
struct predict_counts {
    bool streaming;
    uint32_t segments;
    double steps;    /* steps one after another on the longest path */
    double hops;     /* hops of the longest legs after their first hop, summed over steps */
    double messages; /* messages that a node handles on average, with small blocks; those of a
                      * broadcast count more */
    double blocks;   /* blocks on the critical path (verify.h); streaming: on the busiest channel */
    double busiest;  /* blocks on the channel that carries most of them in all steps together */
    double relays;   /* broadcasts: nodes one after another that each receive a frame before
                      * they pass it on, and have nothing else to send */
};

/* Whether predict_count() takes at most a fraction of a second; on networks other than tori, some seconds. */
bool predict_is_quick(const struct torus *t, const struct algorithm *a);

/* Counts the schedule of an algorithm for exchanges, executed in steps or streaming. Returns 0, or
 * -1 with *e: not for exchanges (ERROR_USAGE), the algorithm refuses the torus, too much work
 * (ERROR_REFUSED), no memory. */
int predict_count(const struct torus *t, const struct algorithm *a, bool streaming,
                  struct predict_counts *counts, struct error *e);
/* The same on channels of these rates (schedule_verify_rated()): `blocks` and `busiest` are in units of the time of a block
 * at the full rate. Streaming, only for routes that were found for these rates. NULL: all channels are alike. */
int predict_count_rated(const struct torus *t, const struct algorithm *a, bool streaming,
                        const struct damage *rates, struct predict_counts *counts, struct error *e);

/* As predict_count(), for an algorithm for allgathers; with `one`, for a broadcast along the trees
 * of one node. */
int predict_count_gather(const struct torus *t, const struct algorithm *a, bool one, bool streaming,
                         struct predict_counts *counts, struct error *e);

/* Predicts the seconds from a node's start until its last block has arrived. */
double predict_seconds(const struct predict_counts *counts, const struct predict_costs *costs,
                       uint64_t block_bytes);

/* Predicts the seconds of an operation that is never measured: a call of a program, an allgather, a
 * broadcast. A link passes the bytes of its burst at once, but makes up for them before the next
 * call can start. Let the operation take a seconds with the burst, and the busiest link b seconds
 * longer without it: the result is the root of a^2 + b^2. Without a burst it is that of
 * predict_seconds(). */
double predict_unmeasured_seconds(const struct predict_counts *counts,
                                  const struct predict_costs *costs, uint64_t block_bytes);

/* Whether an allgather of blocks of this size is faster as a reduction, in which one vector of all
 * blocks is combined on the tree of one node, than streaming with these counts. */
bool predict_joins_gather(const struct torus *t, const struct predict_counts *streaming,
                          const struct predict_costs *costs, uint64_t block_bytes);

/* The least size of a vector for which an allreduce is faster on the trees of all nodes, each of which combines a part,
 * than on a single tree; UINT64_MAX: there is none. */
uint64_t predict_long_reduction(const struct torus *t, const struct predict_costs *costs);

/* The value for costs->frame if relays pass messages on. relay_frame() describes the parameters. */
uint32_t predict_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst);

/* The rate, in bytes a second, with which predict_seconds() predicts the measured `seconds` of an
 * exchange of large blocks, given the other costs. */
double predict_rate(const struct predict_counts *counts, const struct predict_costs *costs,
                    uint64_t block_bytes, double seconds);

/* Sets the costs of a step and of a message to those that explain measured exchanges of very small
 * blocks best: least squares of relative errors, neither cost below zero. `count` is the number of
 * measured counts and seconds, at least 1. Does not change the other costs. */
void predict_fit(const struct predict_counts *counts, const double *seconds, size_t count,
                 struct predict_costs *costs);
