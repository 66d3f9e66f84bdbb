/* What must hold for every trace (daemon/lib/trace), whatever has happened. */
#pragma once

#include "daemon/lib/trace/trace.h"
#include "tests/sim/sim.h"

/* Checks the traces of all live nodes: they are within their bounds, and the times of each port's states are not more
 * than the time that has passed. */
void check_traces(struct sim *sim);

/* The node's last trace, which must exist. */
const struct trace *check_last_trace(struct sim *sim, uint32_t rank);
/* The number of kept events of a kind. */
uint32_t check_count_events(const struct trace *t, enum trace_event_kind kind);
