/* Predictions as torusctl prints them: what "auto" chooses from, and the costs behind it. */
#ifndef TORUSD_CLI_CANDIDATES_H
#define TORUSD_CLI_CANDIDATES_H

#include <torus/torus.h>

#include "client/cli/writer.h"

/* {source: "measured" or "default", measured_at, step_seconds, message_seconds, bits_per_second};
 * measured_at is null or "2026-11-21 10:30:12Z". NULL if there is no memory. */
json_t *calibration_value(const struct torus_calibration *calibration);

/* For a record of it. */
extern const struct field calibration_fields[];

/* {block_bytes, costs, candidates: [{algorithm, mode, segments, piece_bytes, steps, messages,
 * blocks, seconds}, ...]}, the fastest first. NULL if there is no memory. */
json_t *candidates_value(const struct torus_candidates *candidates);

/* Its view, the costs below the table. */
extern const struct view candidates_view;

/* What is predicted for that algorithm in that mode, or a negative number. */
double candidates_seconds(const struct torus_candidates *candidates, const char *algorithm,
                          enum torus_mode mode);

#endif
