/* What `torusctl perf` prints. */
#ifndef TORUSD_CLI_PERF_REPORT_H
#define TORUSD_CLI_PERF_REPORT_H

#include <jansson.h>

#include "client/cli/measuring/perf.h"
#include "client/cli/terminal/writer.h"

extern const char *const perf_types[];     /* by enum torus_type; NULL at 0 and at the end */
extern const char *const perf_operators[]; /* the same by enum torus_operator */

/* An object for one size. link_mbit: 0 if unknown. NULL for want of memory. */
json_t *perf_row_value(const struct perf_plan *plan, const struct perf_row *row, double link_mbit);

/* The whole; takes over `rows`, a list of the above. NULL for want of memory. */
json_t *perf_value(const struct perf_plan *plan, const struct torus *whole,
                   const struct torus *part, double link_mbit, json_t *rows);

extern const struct view perf_view;

#endif
