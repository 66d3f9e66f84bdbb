/* The results of `torusctl perf` as JSON and text. */
#pragma once

#include <jansson.h>

#include "client/cli/measuring/perf.h"
#include "client/cli/terminal/writer.h"

extern const char *const perf_types[];     /* by enum torus_type; NULL at 0 and at the end */
extern const char *const perf_operators[]; /* by enum torus_operator; NULL at 0 and at the end */

/* Returns an object for one size. link_mbit: 0 if unknown. NULL if memory is short. */
json_t *perf_row_value(const struct perf_plan *plan, const struct perf_row *row, double link_mbit);

/* Returns the whole report. Takes ownership of `rows`, a list of the objects above. NULL if memory is short. */
json_t *perf_value(const struct perf_plan *plan, const struct torus *whole,
                   const struct torus *part, double link_mbit, json_t *rows);

extern const struct view perf_view;
