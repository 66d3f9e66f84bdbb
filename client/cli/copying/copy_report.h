/* The result of a copy, as JSON and as sentences for people. */
#pragma once

#include <stdio.h>

#include "client/cli/copying/copy_order.h"
#include "client/cli/survey/all_nodes.h"

/* Returns the value that --json prints; NULL if memory is short. `names` may have no names. */
json_t *copy_report_value(const struct copy_order *o, const struct torus_copy_result *r,
                          const struct all_nodes *names);

/* The view of "per_node" of this value: a table. */
extern const struct view copy_report_table;

/* Whether the result of a dry run lists paths that would be removed. */
bool copy_report_removes(const struct torus_copy_result *r);
/* Return the number of outcomes that are failures, and of those that are not failures but report a difference. */
size_t copy_report_failures(const struct torus_copy_result *r);
size_t copy_report_differences(const struct torus_copy_result *r);

/* --- sentences --- */

/* Prints what was done, what a copy would do (--dry-run; with the entries that --delete would remove at each node), or what
 * differs (--verify), without the nodes that have failed; then what was left out, or could not be preserved, and which
 * nodes took no part. */
void copy_report_print(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                       const struct all_nodes *names);

/* Prints a line for each error, with the nodes that have it. Nothing if memory is short. */
void copy_failures_print(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                         const struct all_nodes *names);
