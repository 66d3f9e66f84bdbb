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
    .options = options,
    .arguments_size = sizeof(struct copy_arguments),
    .needs_daemon = true,
    .run = run,
};
