/* Predicts which algorithm is the fastest for blocks of a given size, on links that have been
 * measured. The counts of a schedule (steps, messages, blocks on the busiest channel) are priced
 * with the costs of a step, a message and a byte; these three numbers are all that is known of a
 * torus. The cost models of the papers, with the parameters of their machines, are in
 * client/theory/cost.h. */
#ifndef TORUSD_SCHEDULE_PREDICT_PREDICT_H
#define TORUSD_SCHEDULE_PREDICT_PREDICT_H

#include "daemon/schedule/algorithm.h"
#include "daemon/schedule/predict/predict_costs.h"

/* The counts of an algorithm on a torus; they do not depend on the size of the blocks. */
struct predict_counts {
    bool streaming;
    uint32_t segments;
    double steps;    /* one after the other on the longest way */
    double hops;     /* of the longest legs after their first hop, summed over steps */
    double messages; /* messages that a node handles on average, with small blocks; a broadcast's
                      * count more */
    double blocks;   /* on the busiest channel, summed over steps */
    double busiest;  /* on the channel that carries most of them, in all steps together */
    double relays;   /* broadcasts: nodes one after the other that each take in a frame before they
                      * pass it on, and have nothing else to send */
};

/* Whether predict_count() takes a fraction of a second at most. */
bool predict_is_quick(const struct torus *t, const struct algorithm *a);

/* Counts the schedule of an exchange's algorithm, executed in steps or streaming. Returns 0, or -1
 * with *e set (torus refused, not an exchange, no memory). */
int predict_count(const struct torus *t, const struct algorithm *a, bool streaming,
                  struct predict_counts *counts, struct error *e);

/* Counts the schedule of an allgather's algorithm; with `one`, of a broadcast along the trees of
 * one node. Otherwise as predict_count(). */
int predict_count_gather(const struct torus *t, const struct algorithm *a, bool one, bool streaming,
                         struct predict_counts *counts, struct error *e);

/* Seconds from a node's start until its last block has arrived. */
double predict_seconds(const struct predict_counts *counts, const struct predict_costs *costs,
                       uint64_t block_bytes);

/* Seconds of an operation that is never measured: a call of a program, an allgather, a
 * broadcast. A link passes the bytes of its burst at once, but makes up for them before the next
 * call can start; so the time by which the busiest link then takes longer is added to the time
 * of the call, as the root of the sum of squares. Without a burst the result is that of
 * predict_seconds(). */
double predict_unmeasured_seconds(const struct predict_counts *counts,
                                  const struct predict_costs *costs, uint64_t block_bytes);

/* Whether an allgather of blocks of so many bytes is faster as one vector of all blocks,
 * combined on the tree of one node, than streaming with these counts. */
bool predict_joins_gather(const struct torus *t, const struct predict_counts *streaming,
                          const struct predict_costs *costs, uint64_t block_bytes);

/* Bytes of a vector from which on an allreduce is faster on the trees of all nodes, each of
 * which combines a part, than on one tree; UINT64_MAX if it never is. */
uint64_t predict_long_reduction(const struct torus *t, const struct predict_costs *costs);

/* The value for costs->frame where relays pass messages on; relay_frame() describes the
 * parameters. */
uint32_t predict_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst);

/* The rate in bytes a second with which predict_seconds(), given the other costs, predicts the
 * measured time of an exchange of large blocks. */
double predict_rate(const struct predict_counts *counts, const struct predict_costs *costs,
                    uint64_t block_bytes, double seconds);

/* The costs of a step and of a message that explain measured exchanges of very small blocks best:
 * least squares of relative errors, neither below zero. `count` >= 1 measured counts and seconds.
 * Leaves costs->bytes_per_second alone. */
void predict_fit(const struct predict_counts *counts, const double *seconds, size_t count,
                 struct predict_costs *costs);

#endif
