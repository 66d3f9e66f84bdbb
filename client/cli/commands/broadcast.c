/* torusctl broadcast: one node sends a block to all nodes. */
#include <stddef.h>

#include "client/cli/exchanging/exchange_run.h"

static const struct option options[] = {
    {"--root", "RANK", offsetof(struct exchange_arguments, sender), "rank of the node that sends"},
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "send a generated pattern of SIZE bytes"},
    {"--from", "FILE", offsetof(struct exchange_arguments, from),
     "send this file of the node that sends"},
    GATHER_OPTIONS,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return exchange_run(cli, TORUS_BROADCAST, arguments);
}

const struct command command_broadcast = {
    .name = "broadcast",
    .summary = "Send one node's block to all nodes",
    .usage = "--root RANK --block-size SIZE | --from FILE --to FOLDER [options]",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
