/* The report of a barrier: when each node came. */
#pragma once

#include <torus/torus.h>

#include "client/cli/terminal/writer.h"
#include "proto/error.h"

extern const struct view barrier_report_view;

/* Returns the report of a barrier of this name (NULL: the default one). Its "nodes" are by rank, or with `by_time` in
 * the order in which they came. Returns NULL with *e if the result is invalid or memory is short. */
json_t *barrier_report(const struct torus_result *x, const char *name, bool by_time,
                       struct error *e);
