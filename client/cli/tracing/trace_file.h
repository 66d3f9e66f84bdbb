/* A trace as a file in the JSON format of Chrome's trace viewer, which Perfetto (ui.perfetto.dev) reads, too: a process
 * for each node, a track for each port, counters. Its member "torusd" holds the same data for 'torusctl report'. */
#pragma once

#include "client/cli/survey/all_nodes.h"

/* A node's trace, or why there is none. */
struct collected_trace {
    const struct torus_trace *trace; /* NULL: there is none of this run */
    bool aligned;      /* its clock has been compared, over links, with that of the first node: */
    int64_t ahead_ns;  /* its clock is ahead by this much; */
    uint64_t error_ns; /* `ahead_ns` is wrong by at most this much */
};

/* The traces of all nodes, on one clock. */
struct collected_traces {
    struct all_nodes nodes;       /* names and the torus */
    struct torus_survey *survey;  /* of collected_traces_ask() */
    const char *id;               /* of the traced run */
    struct collected_trace *node; /* by rank */
    uint32_t traced;              /* how many nodes have a trace */
    uint64_t began_ns, ended_ns;  /* by the clock of the asked node: of all traces */
    uint64_t error_ns;            /* largest error of any aligned node */
};

/* Takes the traces with this id (NULL: with that of the asked node) from answers of nodes, which *c refers to; of *c
 * only `nodes` is set, with the torus and the asked node. Returns 0, or -1 with *e, for instance that nothing has been
 * traced. The caller gives *c to collected_traces_free() in any case. */
int collected_traces_take(struct collected_traces *c, const struct torus_survey *answers,
                          const char *id, struct error *e);
void collected_traces_free(struct collected_traces *c);

/* Commands that print a report call this for the file of --trace (NULL: none). Returns EXIT_DONE, or another exit code
 * after printing that it cannot be standard output. */
int trace_file_check(const struct cli *cli, const char *path);

/* Asks all nodes for the run with this id (NULL: the last one), and writes the file. `run` is what is known about the
 * run, such as the report of an exchange, or NULL; borrowed. Returns EXIT_DONE, or another exit code after printing the
 * reason. */
int trace_file_write(struct cli *cli, const char *path, const char *id, json_t *run);
/* Writes traces that have been collected. Returns 0, or -1 with *e. */
int trace_file_save(const struct collected_traces *c, const char *path, json_t *run,
                    struct error *e);

/* What a port did or waited for, for people: "waits for a step or blocks of other nodes". Static. */
const char *trace_state_name(enum torus_trace_state state);
