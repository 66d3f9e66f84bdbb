/* Predictions as torusctl prints them: what "auto" chooses from, and the costs they are made with.
 */
#ifndef TORUSD_CLI_CANDIDATES_H
#define TORUSD_CLI_CANDIDATES_H

#include <torus/torus.h>

#include "client/cli/terminal/writer.h"

/* {source: "measured" or "default", measured_at, step_seconds, message_seconds, bits_per_second};
 * measured_at is null or "2026-11-21 10:30:12Z". NULL if out of memory. */
json_t *calibration_value(const struct torus_calibration *calibration);

/* The fields of its record. */
extern const struct field calibration_fields[];

/* {block_bytes, costs, candidates: [{algorithm, mode, segments, piece_bytes, steps, messages,
 * blocks, seconds}, ...]}, the fastest first. NULL if out of memory. */
json_t *candidates_value(const struct torus_candidates *candidates);

/* Its view: a table, and the costs below it. */
extern const struct view candidates_view;

/* The predicted time of this algorithm in this mode, or a negative number. */
double candidates_seconds(const struct torus_candidates *candidates, const char *algorithm,
                          enum torus_mode mode);

#endif
