/* The algorithm and mode "auto": what is predicted to be the fastest on this torus (see
 * schedule/predict/predict.h), with the costs that were measured last or, before that, the default ones. */
#ifndef TORUSD_EXCHANGE_PHASES_CHOOSE_ALGORITHM_H
#define TORUSD_EXCHANGE_PHASES_CHOOSE_ALGORITHM_H

#include "daemon/planning/calibration.h"
#include "daemon/planning/planner.h"
#include "daemon/planning/spec.h"
#include "daemon/schedule/predict/predict.h"

struct attempt;
struct exchanges;

#define CHOOSE_MOST 64u

struct candidate {
    const struct algorithm *algorithm;
    enum mode mode;
    struct predict_counts counts;
    uint64_t piece_bytes; /* of a block, that travel together */
    double seconds;       /* predicted */
};

/* Bytes of the blocks of an exchange. */
struct block_sizes {
    uint64_t mean; /* of those that travel */
    uint64_t largest;
};

/* Every way to exchange blocks of these sizes that takes the torus, in this mode or, with
 * MODE_OF_ALGORITHM, in any; the fastest first, at most CHOOSE_MOST. The first call on a torus
 * has the schedules counted, off the loop. Returns 1 with *count of them in *list, 0 if they are being
 * counted (ask again; exchanges_setup.planned tells when), or -1 with *e. */
int choose_candidates(struct exchanges *all, const struct block_sizes *sizes, enum mode mode,
                      struct candidate *list, unsigned *count, struct error *e);

/* The same for a torus of which only `planner` knows, with these costs; with their burst, if they have one: where
 * nothing is measured (predict_unmeasured_seconds()). */
int choose_from(struct planner *planner, const struct torus *t, const struct predict_costs *costs,
                const struct block_sizes *sizes, enum mode mode, struct candidate *list,
                unsigned *count, struct error *e);

/* The same for an allgather or a broadcast of blocks of this size, in either mode. */
int choose_gather_from(struct planner *planner, const struct predict_costs *costs,
                       enum operation operation, uint64_t block_bytes, enum mode mode,
                       struct candidate *list, unsigned *count, struct error *e);

/* The times of a finished session of several exchanges, at its root: the model's prediction for
 * blocks of about that size is corrected by their median, and by the time the links needed between
 * them, from then on, in this daemon, until it ends. What a link lets through in bursts, or
 * processors that nodes share, no model knows. */
void choose_learn(const struct attempt *x);

/* The algorithm that is named; if that is the best of a family, the one that stands for all of it; NULL: "auto". */
const struct algorithm *choose_named(const struct spec *spec);

/* Sets the algorithm and mode of an attempt. Returns 1; 0 if schedules are being counted; or -1 with *e. */
int choose_for(struct attempt *x, struct error *e);

#endif
