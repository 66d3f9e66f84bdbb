/* The result of an exchange as torusctl prints it. */
#pragma once

#include <torus/torus.h>

#include "client/cli/terminal/writer.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

/* Reads the dimensions that a result names. Returns 0, or -1 with *e (ERROR_PROTOCOL): they are invalid, or contradict its
 * number of nodes. */
int result_torus(const struct torus_result *r, struct torus *t, struct error *e);

/* Returns the report as a value, with times in seconds. The lower bound and the efficiency are null if the rate of
 * the links is unknown. If the routes were found for different rates of links, these are in it (link_rates.h). `repeated`: with the times of all repetitions, and their median as the time. Returns NULL
 * with *e if the daemon's dimensions are invalid, or if memory is short. */
json_t *exchange_report(const struct torus_result *r, double call_seconds, bool repeated,
                        struct error *e);

/* Writes a warning about files that were not sent, because their names are not ranks of nodes; "" if there are none. */
void exchange_report_warning(const struct torus_result *r, char *out, size_t size);

/* Returns the view of the report. `per_node` adds a table with a line for each port of each node. */
struct view exchange_report_view(bool repeated, bool per_node);
