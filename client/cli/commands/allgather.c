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
    .details = "Every node sends one block to all other nodes. An allgather succeeds at all\n"
               "nodes or fails at all nodes, as an exchange does.\n"
               "\n" GATHER_DETAILS "examples:\n"
               "  torusctl allgather --block-size 64KiB\n"
               "  torusctl allgather --from /data/part-%r --to /data/parts\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
