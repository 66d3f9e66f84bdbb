/* Traces of runs that never were, as files. */
#pragma once

#include "client/cli/reporting/trace_data.h"

#define TRACE_FIXTURE_INTERVALS 50u /* of 20 ms: a second */

/* Returns a trace file's value, in which every port is busy for 60 % of the time, in which bytes wait for its link, and
 * waits for others in the rest, and carries 1 MB in each interval. The caller owns it. */
json_t *trace_fixture_new(const char *dims);
/* The object of a node, borrowed. */
json_t *trace_fixture_node(json_t *file, uint32_t rank);
/* Moves a part (0 to 1) of the time of a port, from the states where it is, to a state. */
void trace_fixture_wait(json_t *file, uint32_t rank, unsigned port, enum torus_trace_state state,
                        double part);
/* Sets what the link of a port held up: parts (0 to 1) of each interval, and bytes. */
void trace_fixture_load(json_t *file, uint32_t rank, unsigned port, double loaded, double drained,
                        json_int_t carried);
/* The link is busy all the time, and bytes always wait for it, but it carries no more than the others. */
void trace_fixture_slow(json_t *file, uint32_t rank, unsigned port);
/* Multiplies a number of each interval of a port: "sent". */
void trace_fixture_scale(json_t *file, uint32_t rank, unsigned port, const char *member, double by);
/* Sets an element of a list to a number. */
void trace_fixture_set(json_t *file, uint32_t rank, const char *member, size_t index,
                       json_int_t value);
void trace_fixture_add_event(json_t *file, uint32_t rank, double at, enum torus_trace_event kind,
                             json_int_t a, json_int_t b);

/* Reads the value as a file. Takes ownership of it. */
int trace_fixture_read(json_t *file, struct trace_data *d, struct error *e);
