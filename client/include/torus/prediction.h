/* Predicted times of operations, and the costs that the predictions are made with. Part of torus/torus.h, which says
 * what holds for all functions. */
#ifndef TORUS_PREDICTION_H
#define TORUS_PREDICTION_H

#include <torus/exchange.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The costs that predict the times of operations. */
struct torus_costs {
    size_t struct_size;      /* set by torus_costs_init() */
    double step_seconds;     /* time of a short message from one end of a link to the other */
    double message_seconds;  /* time that each message on a link costs each of the two nodes */
    double bytes_per_second; /* rate of block data on a link, each way, while all links are busy */
};

static inline void torus_costs_init(struct torus_costs *costs)
{
    memset(costs, 0, sizeof *costs);
    costs->struct_size = sizeof *costs;
}

struct torus_calibration {
    const struct torus_costs *costs;
    uint64_t measured_at; /* seconds since 1970; 0: never, these are the default costs */
};

/* A way to exchange blocks of a size. */
struct torus_candidate {
    const char *algorithm;
    enum torus_mode mode; /* TORUS_MODE_STEPPED or TORUS_MODE_STREAMING */
    uint32_t segments;    /* parts of a block that take different routes */
    uint64_t piece_bytes; /* bytes of a block that travel together */
    double steps;         /* steps on the longest path */
    double messages;      /* messages that a node sends or relays, on average, with small blocks */
    double blocks;        /* blocks on the busiest channel, summed over steps */
    double seconds;       /* predicted time */
};

struct torus_candidates {
    uint64_t block_bytes; /* size that the times are for: sizes of files are not known before */
    const struct torus_calibration *calibration;
    size_t count;
    const struct torus_candidate *const *candidate; /* the fastest first, which TORUS_AUTO takes */
};

/* Asks the daemon which algorithms TORUS_AUTO would choose from for this TORUS_EXCHANGE. The fields
 * block_bytes, from and mode of the request matter. Nothing is exchanged. Returns 0 with *candidates
 * that the caller frees with torus_candidates_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_candidates(struct torus_client *client,
                                         const struct torus_request *request,
                                         struct torus_candidates **candidates,
                                         struct torus_error *error);
TORUS_EXPORT void
torus_candidates_free(struct torus_candidates *candidates); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). */
TORUS_EXPORT int torus_client_start_candidates(struct torus_client *client,
                                               const struct torus_request *request,
                                               struct torus_candidates **candidates,
                                               torus_done_fn *done, void *data,
                                               struct torus_error *error);

/* Gives all nodes new costs, which they keep across restarts. NULL restores the default costs.
 * Returns 0 with the new *calibration (unless `calibration` is NULL), which the caller frees with
 * torus_calibration_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_calibrate(struct torus_client *client,
                                        const struct torus_costs *costs,
                                        struct torus_calibration **calibration,
                                        struct torus_error *error);
TORUS_EXPORT void torus_calibration_free(struct torus_calibration *calibration); /* NULL: nothing */

/* The same without waiting; see torus_client_start_status(). */
TORUS_EXPORT int torus_client_start_calibrate(struct torus_client *client,
                                              const struct torus_costs *costs,
                                              struct torus_calibration **calibration,
                                              torus_done_fn *done, void *data,
                                              struct torus_error *error);

#ifdef __cplusplus
}
#endif

#endif
