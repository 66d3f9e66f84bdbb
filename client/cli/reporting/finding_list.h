/* The findings of a report while they are collected (findings.c). */
#pragma once

#include "client/cli/reporting/findings.h"

#define FINDINGS_OF_A_KIND                                                                         \
    (FINDINGS_MOST / FINDING_NOTHING) /* more findings of a kind are only counted */

struct finding_list {
    const struct trace_data *data;
    struct finding *list;
    unsigned count;
    unsigned all[FINDING_NOTHING + 1]; /* of each kind, also those that are not in the list */
};

/* Adds a finding that has cost so many seconds. Returns it, for the text; NULL: it is not worth a sentence, or there are
 * enough of its kind that are worse. */
struct finding *finding_add(struct finding_list *l, enum finding_kind kind, uint32_t node,
                            double seconds);

/* Adds to the last finding of each kind how many more there are. */
void finding_count_others(struct finding_list *l);

#define FINDING_LABEL_SIZE 120

/* "alpha (node 3)", or "node 3". Returns `text`. */
const char *finding_label(const struct trace_data *d, uint32_t node, char text[FINDING_LABEL_SIZE]);

/* A time as a part of the run, in percent. */
double finding_share(const struct trace_data *d, double seconds);
/* The time that the port of a node which waited longest for this spent waiting. */
double finding_longest(const struct trace_data *d, uint32_t node, enum torus_trace_state state);
/* The same of TORUS_TRACE_PROCESSOR, or what the system says of it, if that is more. */
double finding_processor_time(const struct trace_data *d, uint32_t node,
                              enum torus_trace_state state);
/* The median of such a time over the nodes that have a trace. */
double finding_usual_time(const struct trace_data *d, enum torus_trace_state state,
                          double (*time)(const struct trace_data *d, uint32_t node,
                                         enum torus_trace_state state));

/* The median of `count` values, which are sorted; 0 if there are none. */
double finding_median(double *values, size_t count);
