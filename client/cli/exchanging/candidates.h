/* Predictions as torusctl prints them: the algorithms from which "auto" chooses, and the costs of the prediction. */
#pragma once

#include <torus/torus.h>

#include "client/cli/terminal/writer.h"

/* Returns {source: "measured" or "default", measured_at, step_seconds, message_seconds, bits_per_second}; measured_at
 * is null or "2026-11-21 10:30:12Z". NULL if memory is short. */
json_t *calibration_value(const struct torus_calibration *calibration);

/* The fields of this object, for a view. */
extern const struct field calibration_fields[];

/* Returns {block_bytes, costs, candidates: [{algorithm, mode, segments, piece_bytes, steps, messages, blocks,
 * seconds}, ...]}, fastest first. If links have different rates, also link_rates: {rates, full_bits_per_second,
 * bound_seconds, equal_bound_seconds}, for which the times are predicted. NULL if memory is short. */
json_t *candidates_value(const struct torus_candidates *candidates);

/* The view of this object: a table, and the costs below it. */
extern const struct view candidates_view;

/* Returns the predicted seconds of the algorithm and mode of a result, or a negative number if they are not known. */
double candidates_seconds(const struct torus_candidates *candidates,
                          const struct torus_result *result);
