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
    const char *repeat; /* exchange and allgather only */
    const char *mode;   /* exchange only */
    const char *root;   /* broadcast only */
    const char *name;   /* barrier only, which has nothing else but a timeout */
    bool missing_ok;
    bool per_node;
    bool explain, dry_run; /* exchange only */
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

/* Those of allgather and broadcast, and what their help says of them. */
#define GATHER_OPTIONS                                                                             \
    {"--algorithm", "NAME", offsetof(struct exchange_arguments, algorithm),                        \
     "one for allgather in 'torusctl algorithms'; else the daemon chooses"},                       \
        {"--to", "FOLDER", offsetof(struct exchange_arguments, to),                                \
         "what has come from node 5 is FOLDER/5 afterwards"},                                      \
        EXCHANGE_OPTIONS
#define GATHER_DETAILS                                                                             \
    "SIZE is in bytes, or with K or KiB (1024), M, MiB, G, GiB, or KB (1000), MB, GB; 0 is\n"      \
    "possible. Every node verifies the generated pattern.\n"                                       \
    "\n"                                                                                           \
    "FILE is a file of the sending node's own disk, below its data roots; if it is a folder,\n"    \
    "the file in it that is named by the node's rank. %r in it stands for the rank, %% for a\n"    \
    "per cent sign. The folder to write must not exist, or be empty, and appears when all is\n"    \
    "done. 'torusctl help exchange' explains the rest.\n"                                          \
    "\n"

#define REPEAT_OPTION                                                                              \
    {                                                                                              \
        "--repeat", "K", offsetof(struct exchange_arguments, repeat),                              \
            "so many of the pattern, back to back; the time is their median"                       \
    }

/* The values of these options. Return 0, or -1 with *e. */
int parse_repeat(const char *text, uint32_t *repeat, struct error *e);
int parse_mode(const char *text, struct error *e);

/* Returns the exit code, having printed everything. */
int exchange_run(struct cli *cli, enum torus_operation operation,
                 const struct exchange_arguments *a);

#endif
