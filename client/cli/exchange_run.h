/* What exchange, allgather, broadcast and barrier have in common: the request, the progress, the
 * report. */
#ifndef TORUSD_CLI_EXCHANGE_RUN_H
#define TORUSD_CLI_EXCHANGE_RUN_H

#include "client/cli/command.h"

struct exchange_arguments {
    const char *algorithm;
    const char *block_size;
    const char *from, *to;
    const char *timeout;
    const char *root; /* broadcast only */
    const char *name; /* barrier only, which has nothing else but a timeout */
    bool missing_ok;
    bool per_node;
};

/* The options that are the same for all of them. */
#define EXCHANGE_OPTIONS                                                                           \
    {"--missing-ok", NULL, offsetof(struct exchange_arguments, missing_ok),                        \
     "a file that is not there counts as empty"},                                                  \
        {"--timeout", "SECONDS", offsetof(struct exchange_arguments, timeout),                     \
         "give up after so long; else the daemon's default"},                                      \
    {                                                                                              \
        "--per-node", NULL, offsetof(struct exchange_arguments, per_node),                         \
            "show each node's ports too (always in JSON)"                                          \
    }

/* Returns the exit code, having printed everything. */
int exchange_run(struct cli *cli, enum torus_operation operation,
                 const struct exchange_arguments *a);

#endif
