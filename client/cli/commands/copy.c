/* torusctl copy: copies trees of files from this node to other nodes. */
#include "client/cli/copying/copy_run.h"

static const struct option options[] = {
    {"SOURCE...", NULL, offsetof(struct copy_arguments, sources),
     "files and folders of this machine, below a data root of its daemon"},
    {"--to", "TARGET", offsetof(struct copy_arguments, to),
     "path of the copy at each node, below a data root there"},
    COPY_OPTIONS(COPY_IF_DOWN),
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return copy_run(cli, TORUS_COPY_TO_ALL, arguments);
}

const struct command command_copy = {
    .name = "copy",
    .summary = "Copy files and folders from this node to all nodes, or some",
    .usage = "SOURCE... --to TARGET [--nodes LIST] [options]",
    .options = options,
    .arguments_size = sizeof(struct copy_arguments),
    .needs_daemon = true,
    .run = run,
};
