/* Which algorithm is the fastest for blocks of a size, on links that have been measured. What a
 * schedule counts (steps, messages, blocks on the busiest channel) is priced with what a step, a
 * message and a byte cost; three numbers are all that is known of a torus. The cost models of the
 * papers, with the parameters of their machines, are in client/theory/cost.h. */
#ifndef TORUSD_SCHEDULE_PREDICT_PREDICT_H
#define TORUSD_SCHEDULE_PREDICT_PREDICT_H

#include "daemon/schedule/algorithm.h"
#include "daemon/schedule/predict/predict_costs.h"

/* What is counted of an algorithm on a torus; does not depend on the size of the blocks. */
struct predict_counts {
    bool streaming;
    uint32_t segments;
    double steps;    /* one after the other on the longest way */
    double hops;     /* of the longest legs after their first hop, summed over steps */
    double messages; /* that a node handles on average, of small blocks; a broadcast's count more */
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

/* The same of an allgather's algorithm; with `one`, of a broadcast along the trees of one node. */
int predict_count_gather(const struct torus *t, const struct algorithm *a, bool one, bool streaming,
                         struct predict_counts *counts, struct error *e);

/* Seconds from a node's start until its last block has come. */
double predict_seconds(const struct predict_counts *counts, const struct predict_costs *costs,
                       uint64_t block_bytes);

/* The same of what is never measured: calls of programs, allgathers and broadcasts. What a link passes at once is
 * faster than that, and what the busiest one then makes good before the next call can start counts as much as
 * it is longer. Without a burst it is predict_seconds(). */
double predict_unmeasured_seconds(const struct predict_counts *counts,
                                  const struct predict_costs *costs, uint64_t block_bytes);

/* Whether an allgather of blocks of so many bytes is faster as one vector of them all, combined on the tree
 * of one node, than streaming as counted. */
bool predict_joins_gather(const struct torus *t, const struct predict_counts *streaming,
                          const struct predict_costs *costs, uint64_t block_bytes);

/* Bytes of a vector from which an allreduce is faster on the trees of all nodes, each of which
 * combines a part, than on one; UINT64_MAX where it never is. */
uint64_t predict_long_reduction(const struct torus *t, const struct predict_costs *costs);

/* costs->frame where relays pass messages on; see relay_frame() for the parameters. */
uint32_t predict_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst);

/* The bytes a second with which predict_seconds() explains a measured exchange of large blocks,
 * given the other costs. */
double predict_rate(const struct predict_counts *counts, const struct predict_costs *costs,
                    uint64_t block_bytes, double seconds);

/* The costs of a step and of a message that explain measured exchanges of very small blocks best:
 * least squares of relative errors, neither below zero. `count` >= 1 measured counts and seconds.
 * Leaves costs->bytes_per_second alone. */
void predict_fit(const struct predict_counts *counts, const double *seconds, size_t count,
                 struct predict_costs *costs);

#endif
