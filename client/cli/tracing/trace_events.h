/* The events of a trace file: slices, counters and names, as Chrome's trace viewer and Perfetto draw them. */
#pragma once

#include "client/cli/tracing/collected_traces.h"

/* Returns the events of all nodes, or NULL if memory is short. The caller owns the array. */
json_t *trace_events(const struct collected_traces *c);

/* What a port did or waited for, for people: "waits for a step or blocks of other nodes". Static. */
const char *trace_state_name(enum torus_trace_state state);
