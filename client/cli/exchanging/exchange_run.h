/* The common part of exchange, allgather and broadcast: request, progress and report. */
#pragma once

#include "client/cli/terminal/command.h"

struct exchange_arguments {
    const char *algorithm;
    const char *q;        /* exchange only */
    const char *schedule; /* not broadcast */
    const char *block_size;
    const char *from, *to;
    const char *timeout;
    const char *repeat;
    const char *mode;
    const char *sender; /* broadcast only */
    const char *on_failure;
    const char *trace;
    bool missing_ok, replace;
    bool per_node;
    bool explain, dry_run; /* exchange only */
    bool trees;            /* exchange only: see client/cli/copying/copy_run.h */
};

/* Options of all operations that move blocks, in two parts. The other options of an operation come before and between
 * these parts. `if_down` is the help text of --on-failure. */
#define MOVING_OPTIONS(if_down)                                                                    \
    {"--to", "FOLDER", offsetof(struct exchange_arguments, to),                                    \
     "write the data from node 5 to FOLDER/5"},                                                    \
        {"--repeat", "K", offsetof(struct exchange_arguments, repeat),                             \
         "run K times back to back; the time shown is the median"},                                \
        {"--mode", "MODE", offsetof(struct exchange_arguments, mode),                              \
         "stepped or streaming (default: what suits the algorithm)"},                              \
    {                                                                                              \
        "--on-failure", "ACTION", offsetof(struct exchange_arguments, on_failure), if_down         \
    }
#define FINAL_OPTIONS                                                                              \
    {"--trace", "FILE", offsetof(struct exchange_arguments, trace),                                \
     "record what each port does, and write it to FILE\n(see 'torusctl help trace')"},             \
        {"--missing-ok", NULL, offsetof(struct exchange_arguments, missing_ok),                    \
         "treat missing files as empty"},                                                          \
        {"--replace", NULL, offsetof(struct exchange_arguments, replace),                          \
         "replace an old result in the folder, and remove it"},                                    \
        {"--timeout", "SECONDS", offsetof(struct exchange_arguments, timeout),                     \
         "give up after SECONDS (default: the daemon's)"},                                         \
    {                                                                                              \
        "--per-node", NULL, offsetof(struct exchange_arguments, per_node),                         \
            "also show the figures of each node's ports (always in JSON)"                          \
    }

/* Option of exchange and allgather. */
#define SCHEDULE_OPTION                                                                            \
    {                                                                                              \
        "--schedule", "FILE", offsetof(struct exchange_arguments, schedule),                       \
            "run the schedule in this file instead of an algorithm\n(see 'torusctl help plan')"    \
    }

/* Options of allgather and broadcast. */
#define GATHER_OPTIONS                                                                             \
    {"--algorithm", "NAME", offsetof(struct exchange_arguments, algorithm),                        \
     "an allgather algorithm of 'torusctl algorithms' (default: chosen by the daemon)"},           \
        MOVING_OPTIONS("what to do if nodes are down: fail, or wait for them\n(default: fail)"),   \
        FINAL_OPTIONS

/* Runs the operation, and prints everything. Returns the exit code. */
int exchange_run(struct cli *cli, enum torus_operation operation,
                 const struct exchange_arguments *a);
