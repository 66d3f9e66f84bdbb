/* torusctl allgather: each node sends one block to all nodes. */
#include <stddef.h>

#include "client/cli/exchanging/exchange_run.h"

static const struct option options[] = {
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "gather a generated pattern, with SIZE bytes from each node"},
    {"--from", "FILE", offsetof(struct exchange_arguments, from),
     "gather files: send this file of each node"},
    SCHEDULE_OPTION,
    GATHER_OPTIONS,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return exchange_run(cli, TORUS_ALLGATHER, arguments);
}

const struct command command_allgather = {
    .name = "allgather",
    .summary = "Send each node's block to all nodes",
    .usage = "--block-size SIZE | --from FILE --to FOLDER [options]",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
