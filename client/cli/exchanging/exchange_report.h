/* The result of an exchange as torusctl prints it. */
#ifndef TORUSD_CLI_EXCHANGE_REPORT_H
#define TORUSD_CLI_EXCHANGE_REPORT_H

#include <torus/torus.h>

#include "client/cli/terminal/writer.h"
#include "proto/error.h"

/* The value: times in seconds, the lower bound in seconds and the efficiency against it (null where
 * the links' rate is unknown). `repeated`: with the times of all repetitions, and their median as
 * the time. Returns NULL with *e set if the daemon's dimensions are invalid, or if out of memory.
 */
json_t *exchange_report(const struct torus_result *r, double call_seconds, bool repeated,
                        struct error *e);

/* Writes a warning of files that were not sent since no node is named like them; "" if there are none. */
void exchange_report_warning(const struct torus_result *r, char *out, size_t size);

/* Its view; `per_node` adds a table with one line per port of each node. */
struct view exchange_report_view(bool repeated, bool per_node);

#endif
