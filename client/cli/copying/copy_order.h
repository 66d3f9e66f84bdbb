/* What a copy is asked to do: its options (copy, gather, scatter, and exchange with --trees), and the request that is made
 * from them. */
#pragma once

#include <stdbool.h>
#include <torus/torus.h>

#include "daemon/lib/command_line/options.h"
#include "proto/error.h"

struct copy_arguments {
    struct option_list sources;
    struct option_list
        patterns; /* --exclude, --include and --exclude-from, in the order of the command line */
    const char *to, *nodes, *on_failure, *timeout, *trace, *changing, *max_delete;
    bool delete, delete_root, copy_links, checksum, dry_run, verify, as_it_comes, per_node;
    bool missing_ok; /* not copy, which has one node that reads */
    /* Only of exchange --trees: */
    const char *algorithm; /* as requested_algorithm() returns it; NULL: the nodes choose */
    enum torus_mode mode;
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

/* For operations in which several nodes read, or one node reads something for each other node. */
#define COPY_MISSING_OPTION                                                                        \
    {                                                                                              \
        "--missing-ok", NULL, offsetof(struct copy_arguments, missing_ok),                         \
            "if a SOURCE does not exist, copy nothing from there, and remove\nnothing"             \
    }

#define COPY_IF_DOWN                                                                               \
    "what to do if nodes are down: fail, shrink (leave them out), or wait for\n"                   \
    "them (default: fail)"

/* The patterns of a copy, from the command line and from files. */
struct copy_patterns {
    size_t count;
    char *pattern[TORUS_COPY_LIST_MAX]; /* "- PATTERN" or "+ PATTERN" */
};

/* The request of a copy, made from options. */
struct copy_order {
    struct torus_copy copy; /* the request; its lists are those below */
    char *source[TORUS_COPY_LIST_MAX];
    char *target;
    uint32_t *nodes;
    struct copy_patterns patterns;
};

/* Makes a request, and checks everything that does not depend on the torus. `arguments` must stay. Returns 0, or -1
 * with *e. In either case the caller gives *o to copy_order_free(). */
int copy_order_make(struct copy_order *o, enum torus_copy_kind kind, const struct copy_arguments *a,
                    struct error *e);

/* Completes the request for the node that is asked: its rank, and the ranks of --nodes. Returns 0, or -1 with *e. */
int copy_order_place(struct copy_order *o, const char *list, uint32_t rank, uint32_t nodes,
                     struct error *e);
void copy_order_free(struct copy_order *o);

/* --- paths and patterns, as people write them --- */

/* Makes a path absolute, from the working directory, without "." and without slashes at its end. Does not follow
 * symbolic links, so that a link stays what is copied. `literal`: every per cent sign in `text` stands for itself;
 * otherwise the daemon replaces %r in it. Returns 0 with *path, which the caller frees, or -1 with *e. */
int copy_path_absolute(const char *text, bool literal, char **path, struct error *e);
