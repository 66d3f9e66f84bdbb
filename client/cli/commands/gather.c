/* torusctl gather: copies trees of files from all other nodes to this node. */
#include "client/cli/copying/copy_run.h"

static const struct option options[] = {
    {"SOURCE...", NULL, offsetof(struct copy_arguments, sources),
     "files and folders of each node, below a data root of its daemon"},
    {"--to", "TARGET", offsetof(struct copy_arguments, to),
     "path at this machine for the files of each node, with %r for its rank"},
    COPY_OPTIONS(COPY_IF_DOWN),
    COPY_MISSING_OPTION,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return copy_run(cli, TORUS_COPY_GATHER, arguments);
}

const struct command command_gather = {
    .name = "gather",
    .summary = "Copy files and folders of all nodes to this node",
    .usage = "SOURCE... --to TARGET [--nodes LIST] [options]",
    .options = options,
    .arguments_size = sizeof(struct copy_arguments),
    .needs_daemon = true,
    .run = run,
};
