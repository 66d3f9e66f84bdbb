/* torusctl scatter: copies trees of files from this node to other nodes, different ones to each. */
#include "client/cli/copying/copy_run.h"

static const struct option options[] = {
    {"SOURCE...", NULL, offsetof(struct copy_arguments, sources),
     "files and folders of this machine for each node, with %r for its rank"},
    {"--to", "TARGET", offsetof(struct copy_arguments, to),
     "path of the copy at each node, below a data root there"},
    COPY_OPTIONS(COPY_IF_DOWN),
    COPY_MISSING_OPTION,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return copy_run(cli, TORUS_COPY_SCATTER, arguments);
}

const struct command command_scatter = {
    .name = "scatter",
    .summary = "Copy different files and folders from this node to each node",
    .usage = "SOURCE... --to TARGET [--nodes LIST] [options]",
    .details =
        "Each other node gets its own SOURCE, which must contain %r: the rank of the node that\n"
        "the files go to. In TARGET, %r stands for the same rank. %% is a per cent sign in\n"
        "both. To send the same files to all nodes, use 'torusctl copy'.\n"
        "\n"
        "Each node gets everything or nothing. If a node fails, the others get their files all\n"
        "the same, and the exit status is 1. Files that a node has already are not sent.\n"
        "'torusctl help copy' explains everything that is the same here: names, patterns, what\n"
        "is preserved, interruption, --verify.\n"
        "\n"
        "examples:\n"
        "  torusctl scatter /data/shards/%r --to /data/shard\n"
        "  torusctl scatter /data/shards/%r --to /data/shard --dry-run\n",
    .options = options,
    .arguments_size = sizeof(struct copy_arguments),
    .needs_daemon = true,
    .run = run,
};
