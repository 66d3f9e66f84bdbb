/* torusctl allgather: each node sends one block to all. */
#include <stddef.h>

#include "client/cli/exchange_run.h"

static const struct option options[] = {
    {"--algorithm", "NAME", offsetof(struct exchange_arguments, algorithm),
     "one for allgather in 'torusctl algorithms'; else one that takes the torus"},
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "gather a generated pattern, so much from each node"},
    {"--from", "FILE", offsetof(struct exchange_arguments, from),
     "gather files: this one of each node"},
    {"--to", "FOLDER", offsetof(struct exchange_arguments, to),
     "what has come from node 5 is FOLDER/5 afterwards"},
    EXCHANGE_OPTIONS,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return exchange_run(cli, TORUS_ALLGATHER, arguments);
}

extern const struct command command_allgather;
const struct command command_allgather = {
    .name = "allgather",
    .summary = "Give every node the blocks of all",
    .usage = "--block-size SIZE | --from FILE --to FOLDER [options]",
    .details =
        "Every node sends the same block of its own to all others. It is done like an exchange: on "
        "all\n"
        "nodes or on none.\n"
        "\n"
        "SIZE is in bytes, or with K or KiB (1024), M, MiB, G, GiB, or KB (1000), MB, GB; 0 is\n"
        "possible. Every node verifies the generated pattern.\n"
        "\n"
        "FILE is a file of each node's own disk, below its data roots; if it is a folder, the file "
        "in it\n"
        "that is named by the node's rank. %r in it stands for the rank, %% for a per cent sign. "
        "The\n"
        "folder to write must not exist, or be empty, and appears when all is done. 'torusctl "
        "help\n"
        "exchange' explains the rest.\n"
        "\n"
        "examples:\n"
        "  torusctl allgather --block-size 64KiB\n"
        "  torusctl allgather --from /data/part-%r --to /data/parts\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
