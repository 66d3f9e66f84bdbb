/* The result of a copy as JSON, and what both reports count. */
#pragma once

#include "client/cli/copying/copy_order.h"
#include "client/cli/survey/all_nodes.h"

/* Returns the value that --json prints; NULL if memory is short. `names` may have no names. */
json_t *copy_report_value(const struct copy_order *o, const struct torus_copy_result *r,
                          const struct all_nodes *names);

/* The view of "per_node" of this value: a table. */
extern const struct view copy_report_table;

/* Returns whether the target of a node differs from its source, or would be changed. */
bool copy_report_differs(const struct torus_copy_node *n);

/* Whether a dry run tells paths that would be removed. */
bool copy_report_removes(const struct torus_copy_result *r);
/* Returns the number of outcomes that are failures; and that are none, but differ. */
size_t copy_report_failures(const struct torus_copy_result *r);
size_t copy_report_differences(const struct torus_copy_result *r);
