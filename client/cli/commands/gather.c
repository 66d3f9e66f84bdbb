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
    .details =
        "Each other node sends its SOURCE, and this node writes them, each at its own TARGET.\n"
        "TARGET must contain %r, which stands for the rank of the node that the files come\n"
        "from. In SOURCE, %r stands for the node's own rank. %% is a per cent sign in both.\n"
        "\n"
        "The files of a node are complete or not there at all. If a node fails, those of the\n"
        "other nodes arrive all the same, and the exit status is 1. Files that this node has\n"
        "already are not sent. 'torusctl help copy' explains everything that is the same here:\n"
        "names, patterns, what is preserved, interruption, --verify.\n"
        "\n"
        "To gather at another node, run the command there.\n"
        "\n"
        "examples:\n"
        "  torusctl gather /var/log/app --to /data/logs/%r\n"
        "  torusctl gather /data/out/%r --to /data/all/%r --delete\n"
        "  torusctl gather /data/a /data/b --to /data/from/%r/ --nodes 1-3\n",
    .options = options,
    .arguments_size = sizeof(struct copy_arguments),
    .needs_daemon = true,
    .run = run,
};
