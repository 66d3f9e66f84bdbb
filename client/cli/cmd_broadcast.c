/* torusctl broadcast: one node sends a block to all. */
#include <stddef.h>

#include "client/cli/exchange_run.h"

static const struct option options[] = {
    {"--root", "RANK", offsetof(struct exchange_arguments, root), "the node to send from"},
    {"--algorithm", "NAME", offsetof(struct exchange_arguments, algorithm),
     "one for allgather in 'torusctl algorithms'; else one that takes the torus"},
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "send a generated pattern of so much"},
    {"--from", "FILE", offsetof(struct exchange_arguments, from), "send this file of the root's"},
    {"--to", "FOLDER", offsetof(struct exchange_arguments, to),
     "what has come from node 5 is FOLDER/5 afterwards"},
    EXCHANGE_OPTIONS,
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
        "\n"
        "SIZE is in bytes, or with K or KiB (1024), M, MiB, G, GiB, or KB (1000), MB, GB; 0 is\n"
        "possible. Every node verifies the generated pattern.\n"
        "\n"
        "FILE is a file of the node's own disk, below its data roots; if it is a folder, the file "
        "in it\n"
        "that is named by the node's rank. %r in it stands for the rank, %% for a per cent sign. "
        "The\n"
        "folder to write must not exist, or be empty, and appears when all is done. 'torusctl "
        "help\n"
        "exchange' explains the rest.\n"
        "\n"
        "examples:\n"
        "  torusctl broadcast --root 0 --block-size 64KiB\n"
        "  torusctl broadcast --root 3 --from /data/config --to /data/new\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
