/* A trace as a file in the JSON format of Chrome's trace viewer, which Perfetto (ui.perfetto.dev) reads, too: a process
 * for each node, a track for each port, counters. Its member "torusd" holds the same data for 'torusctl report'. */
#pragma once

#include "client/cli/tracing/collected_traces.h"

/* Commands that print a report call this for the file of --trace (NULL: none). Returns EXIT_DONE, or another exit code
 * after printing that it cannot be standard output. */
int trace_file_check(const struct cli *cli, const char *path);

/* Asks all nodes for the run with this id (NULL: the last one), and writes the file. `run` is what is known of the run,
 * such as the report of an exchange, or NULL; borrowed. Returns EXIT_DONE, or another exit code after printing the
 * reason. */
int trace_file_write(struct cli *cli, const char *path, const char *id, json_t *run);
/* Writes traces that have been collected. Returns 0, or -1 with *e. */
int trace_file_save(const struct collected_traces *c, const char *path, json_t *run,
                    struct error *e);
