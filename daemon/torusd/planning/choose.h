/* Chooses an algorithm and mode: those with the shortest predicted time on a torus (schedule/predict.h), corrected
 * by the times of earlier exchanges. On networks other than tori the routes of `stream` are found before they are
 * counted. */
#pragma once

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/predict.h"
#include "daemon/torusd/planning/planner.h"
#include "daemon/torusd/planning/spec.h"

#define CHOOSE_MOST 64u

struct candidate {
    /* In the registry. With rates, and on networks other than tori, `stream` stands for the routes that are found
     * there. */
    const struct algorithm *algorithm;
    enum mode mode;
    struct predict_counts counts;
    uint64_t piece_bytes; /* bytes of a block that travel together */
    double seconds;       /* predicted */
};

/* Sizes of the blocks of an exchange, in bytes. */
struct block_sizes {
    uint64_t mean; /* of the blocks that are sent to other nodes */
    uint64_t largest;
};

/* Lists the ways to exchange blocks of these sizes that work on the torus, fastest first, at most CHOOSE_MOST. `mode`
 * limits the list; MODE_OF_ALGORITHM allows both modes. `rates`: those of the channels of the whole network, or NULL if
 * all are alike; with rates `stream` stands for the routes that are found for them. Adds the cost of bursts, if the
 * costs have one, where nothing was measured (predict_unmeasured_seconds()). The planner's first call counts the
 * schedules in a worker thread. Returns 1 with *count entries in *list; 0 while the schedules are counted (call again
 * after the planner's wake); or -1 with *e. */
int choose_from(struct planner *planner, const struct torus *t, const struct predict_costs *costs,
                const struct damage *rates, const struct block_sizes *sizes, enum mode mode,
                struct candidate *list, unsigned *count, struct error *e);

/* Works like choose_from(), for an allgather or broadcast of blocks of this size, in both modes. */
int choose_gather_from(struct planner *planner, const struct predict_costs *costs,
                       enum schedule_operation operation, uint64_t block_bytes, enum mode mode,
                       struct candidate *list, unsigned *count, struct error *e);

/* Returns an algorithm for a torus where none could be counted: the first of the registry that can do the operation;
 * NULL: there is none. On other networks than tori these are `tree` and one-port algorithms; `direct` loads links
 * less. */
const struct algorithm *choose_first(const struct torus *t, enum schedule_operation operation);

/* Returns the algorithm that the spec names; for the best of a family, the algorithm that stands for the
 * family; NULL for "auto". */
const struct algorithm *choose_named(const struct spec *spec);

/* Returns the member of a family with the shortest predicted time, or NULL if there is no memory. */
const struct algorithm *choose_of_family(const struct family *f, const struct torus *t,
                                         const struct predict_costs *costs, uint64_t block_bytes);

/* The times of a session of several exchanges. */
struct session_times {
    const struct algorithm *algorithm;
    uint64_t block_bytes;
    const uint64_t *each; /* nanoseconds of each of `repeat` exchanges */
    uint32_t repeat;
    uint64_t
        all_ns; /* nanoseconds from the beginning of the first one to the end of the last one */
};

/* Learns from these times. From then on, as long as the planner exists, the prediction for blocks of about that size is
 * corrected by the median time, and by the time that the links needed between exchanges. This covers effects that no
 * model knows, such as bursts on links and processors shared by nodes. */
void choose_learn_times(struct planner *planner, const struct predict_costs *costs,
                        const struct session_times *times);
