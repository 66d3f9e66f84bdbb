/* Chooses for algorithm and mode "auto": the pair with the shortest predicted time on this torus
 * (schedule/predict/predict.h). Predictions use the latest measured costs, or default costs before any
 * measurement. On networks other than tori the routes of `stream` are found before they are counted. The root chooses; the
 * other nodes take its choice from Prepare or, if the sizes of blocks must be known first, from Layout. */
#pragma once

#include "daemon/lib/schedule/predict/predict.h"
#include "daemon/torusd/planning/calibration.h"
#include "daemon/torusd/planning/planner.h"
#include "daemon/torusd/planning/spec.h"

struct attempt;
struct exchanges;

#define CHOOSE_MOST 64u

struct candidate {
    /* In the registry. On networks other than tori `stream` stands for the routes that are found there. */
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

/* Lists the ways to exchange blocks of these sizes that work on the torus, fastest first, at most CHOOSE_MOST.
 * `mode` limits the list; MODE_OF_ALGORITHM allows both modes. The first call on a torus counts the schedules
 * in a worker thread. Returns 1 with *count entries in *list; 0 while the schedules are counted (call again
 * after exchanges_setup.planned); or -1 with *e. */
int choose_candidates(struct exchanges *exchanges, const struct block_sizes *sizes, enum mode mode,
                      struct candidate *list, unsigned *count, struct error *e);

/* Works like choose_candidates(), for a torus that only `planner` knows, and with the given costs. Adds the
 * cost of bursts, if the costs have one, where nothing was measured (predict_unmeasured_seconds()). */
int choose_from(struct planner *planner, const struct torus *t, const struct predict_costs *costs,
                const struct block_sizes *sizes, enum mode mode, struct candidate *list,
                unsigned *count, struct error *e);

/* Works like choose_from(), for an allgather or broadcast of blocks of this size, in both modes. */
int choose_gather_from(struct planner *planner, const struct predict_costs *costs,
                       enum operation operation, uint64_t block_bytes, enum mode mode,
                       struct candidate *list, unsigned *count, struct error *e);

/* Learns from the times of a finished session of several exchanges, at its root. From then on, until the daemon
 * ends, the prediction for blocks of about that size is corrected by the median time, and by the time that the
 * links needed between exchanges. This covers effects that no model knows, such as bursts on links and
 * processors shared by nodes. */
void choose_learn(const struct attempt *x);

/* Returns the algorithm that the spec names; for the best of a family, the algorithm that stands for the
 * family; NULL for "auto". */
const struct algorithm *choose_named(const struct spec *spec);

/* Sets the algorithm and mode of an attempt. Returns 1; 0 while schedules are being counted; or -1 with *e. */
int choose_for(struct attempt *x, struct error *e);
