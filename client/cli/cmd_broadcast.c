/* torusctl broadcast: one node sends a block to all. */
#include <stddef.h>

#include "client/cli/exchange_run.h"

static const struct option options[] = {
    {"--root", "RANK", offsetof(struct exchange_arguments, sender), "the node to send from"},
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "send a generated pattern of so much"},
    {"--from", "FILE", offsetof(struct exchange_arguments, from), "send this file of the root's"},
    GATHER_OPTIONS,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return exchange_run(cli, TORUS_BROADCAST, arguments);
}

extern const struct command command_broadcast;
const struct command command_broadcast = {
    .name = "broadcast",
    .summary = "Give every node the block of one",
    .usage = "--root RANK --block-size SIZE | --from FILE --to FOLDER [options]",
    .details =
        "One node sends a block to all others, over its tree in an allgather. It is done like an\n"
        "exchange: on all nodes or on none.\n"
        "\n" GATHER_DETAILS "examples:\n"
        "  torusctl broadcast --root 0 --block-size 64KiB\n"
        "  torusctl broadcast --root 3 --from /data/config --to /data/new\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
