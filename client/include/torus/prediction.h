/* Predicted times of operations, and the costs that they are predicted from. Part of torus/torus.h, which has the
 * rules for errors, ownership and threads. */
#ifndef TORUS_PREDICTION_H
#define TORUS_PREDICTION_H

#include <torus/exchange.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The costs from which the daemon predicts the times of operations. */
struct torus_costs {
    size_t struct_size;     /* set by torus_costs_init() */
    double step_seconds;    /* time of a short message over one link */
    double message_seconds; /* time that each of the two nodes spends on a message */
    /* Rate of block data on a link in each direction, while all links are busy. */
    double bytes_per_second;
};

/* Sets all costs to 0, and struct_size. */
static inline void torus_costs_init(struct torus_costs *costs)
{
    memset(costs, 0, sizeof *costs);
    costs->struct_size = sizeof *costs;
}

struct torus_calibration {
    const struct torus_costs *costs;
    uint64_t measured_at; /* seconds since 1970; 0: never measured, default costs */
};

/* An algorithm and how the daemon would run it, with its predicted time. */
struct torus_candidate {
    const char *algorithm;
    enum torus_mode mode; /* TORUS_MODE_STEPPED or TORUS_MODE_STREAMING */
    uint32_t segments;    /* equal parts of a block, each with its own route */
    uint64_t piece_bytes; /* bytes of a segment that are sent in one round */
    double steps;         /* steps on the longest path */
    double messages;      /* messages that a node sends or relays on average, if blocks are small */
    double blocks;        /* blocks on the busiest channel, summed over the steps */
    double seconds;       /* predicted time */
};

struct torus_candidates {
    uint64_t block_bytes; /* block size of the predictions; assumed if files are exchanged */
    const struct torus_calibration *calibration;
    size_t count;
    const struct torus_candidate *const *candidate; /* fastest first; TORUS_AUTO takes the first */
    /* That the predictions are made for; NULL: all links are taken for equal. */
    const struct torus_link_rates *link_rates;
};

/* Asks the daemon from which algorithms TORUS_AUTO would choose for this TORUS_EXCHANGE. Only the fields block_bytes,
 * from and mode of the request matter. Nothing is exchanged. Returns 0 with *candidates that the caller frees with
 * torus_candidates_free(), or -1 with *error set. */
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

/* Sets the costs at all nodes, which keep them across restarts. NULL for `costs` restores the default costs. Returns
 * 0 with the new *calibration (unless `calibration` is NULL), which the caller frees with torus_calibration_free(),
 * or -1 with *error set. */
TORUS_EXPORT int torus_client_calibrate(struct torus_client *client,
                                        const struct torus_costs *costs,
                                        struct torus_calibration **calibration,
                                        struct torus_error *error);
TORUS_EXPORT void
torus_calibration_free(struct torus_calibration *calibration); /* NULL does nothing */

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
