/* The options of copy, gather and scatter, and of exchange with --trees. */
#pragma once

#include "daemon/lib/command_line/options.h"

struct copy_arguments {
    struct option_list sources;
    struct option_list
        patterns; /* --exclude, --include and --exclude-from, in the order of the command line */
    const char *to, *nodes, *on_failure, *timeout, *trace, *changing, *max_delete;
    bool delete, delete_root, copy_links, checksum, dry_run, verify, as_it_comes, per_node;
    bool missing_ok; /* not copy, which has one node that reads */
};

/* The rows of these options, except the first two. */
#define COPY_OPTIONS(if_down)                                                                      \
    {"--nodes", "LIST", offsetof(struct copy_arguments, nodes),                                    \
     "the other nodes that take part: all (default), or ranks such as 0,3-5"},                     \
        {"--delete", NULL, offsetof(struct copy_arguments, delete),                                \
         "remove what the target has and the source lacks"},                                       \
        {"--max-delete", "N", offsetof(struct copy_arguments, max_delete),                         \
         "with --delete: if more than N files, folders and links of a node would\nbe removed, "    \
         "change nothing there"},                                                                  \
        {"--delete-root", NULL, offsetof(struct copy_arguments, delete_root),                      \
         "allow --delete to remove what else is in the target if that is a data\nroot"},           \
        {"--copy-links", NULL, offsetof(struct copy_arguments, copy_links),                        \
         "copy what symbolic links lead to, not the links"},                                       \
        {"--changing", "ACTION", offsetof(struct copy_arguments, changing),                        \
         "what to do if a file changes meanwhile, other than by growing: fail,\nor skip (leave "   \
         "it as it is at the target, copy the rest, and exit with\nstatus 1) (default: fail)"},    \
        {"--checksum", NULL, offsetof(struct copy_arguments, checksum),                            \
         "compare contents, even if sizes and times are equal"},                                   \
        {"--dry-run", NULL, offsetof(struct copy_arguments, dry_run),                              \
         "change nothing, and say what would be done; with --delete, list what\nwould be "         \
         "removed"},                                                                               \
        {"--verify", NULL, offsetof(struct copy_arguments, verify),                                \
         "change nothing: compare contents, and say what differs"},                                \
        {"--exclude", "PATTERN...", offsetof(struct copy_arguments, patterns),                     \
         "leave out names that match PATTERN (as rsync does)"},                                    \
        {"--include", "PATTERN...", offsetof(struct copy_arguments, patterns),                     \
         "keep names that match PATTERN although a later pattern leaves them\nout"},               \
        {"--exclude-from", "FILE...", offsetof(struct copy_arguments, patterns),                   \
         "read patterns from FILE, one a line"},                                                   \
        {"--as-it-comes", NULL, offsetof(struct copy_arguments, as_it_comes),                      \
         "put each file in place when it is complete, not all at the end"},                        \
        {"--on-failure", "ACTION", offsetof(struct copy_arguments, on_failure), if_down},          \
        {"--timeout", "SECONDS", offsetof(struct copy_arguments, timeout),                         \
         "give up after SECONDS (default: no limit)"},                                             \
        {"--trace", "FILE", offsetof(struct copy_arguments, trace),                                \
         "record what each port does, and write it to FILE\n(see 'torusctl help trace')"},         \
    {                                                                                              \
        "--per-node", NULL, offsetof(struct copy_arguments, per_node),                             \
            "also show the figures of each node (always in JSON)"                                  \
    }

/* Of operations in which several nodes read, or one reads something for each node. */
#define COPY_MISSING_OPTION                                                                        \
    {                                                                                              \
        "--missing-ok", NULL, offsetof(struct copy_arguments, missing_ok),                         \
            "if a SOURCE does not exist, copy nothing from there, and remove\nnothing"             \
    }

#define COPY_IF_DOWN                                                                               \
    "what to do if nodes are down: fail, shrink (leave them out), or wait for\n"                   \
    "them (default: fail)"
