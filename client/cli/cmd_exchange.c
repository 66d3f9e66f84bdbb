/* torusctl exchange: runs a complete exchange and reports what it took. */
#include <stddef.h>

#include "client/cli/exchange_run.h"

static const struct option options[] = {
    {"--algorithm", "NAME", offsetof(struct exchange_arguments, algorithm),
     "see 'torusctl algorithms'; else auto: the one predicted to be the fastest"},
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "exchange a generated pattern, so much to each node"},
    {"--from", "FOLDER", offsetof(struct exchange_arguments, from),
     "exchange files: FOLDER/5 goes to node 5"},
    {"--to", "FOLDER", offsetof(struct exchange_arguments, to),
     "what has come from node 5 is FOLDER/5 afterwards"},
    REPEAT_OPTION,
    {"--mode", "MODE", offsetof(struct exchange_arguments, mode),
     "stepped or streaming; else whichever suits the algorithm"},
    {"--explain", NULL, offsetof(struct exchange_arguments, explain),
     "first list what auto chooses from, with the predicted times"},
    {"--dry-run", NULL, offsetof(struct exchange_arguments, dry_run),
     "only list that, and exchange nothing"},
    EXCHANGE_OPTIONS,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return exchange_run(cli, TORUS_EXCHANGE, arguments);
}

extern const struct command command_exchange;
const struct command command_exchange = {
    .name = "exchange",
    .summary = "Run a complete exchange on the whole torus",
    .usage = "--block-size SIZE | --from FOLDER --to FOLDER [options]",
    .details =
        "Every node sends a block of its own to every other node. The command ends when all nodes\n"
        "have everything and have committed it, or when it has failed everywhere. Ctrl-C cancels.\n"
        "\n"
        "SIZE is in bytes, or with K or KiB (1024), M, MiB, G, GiB, or KB (1000), MB, GB; 0 is\n"
        "possible. Every destination verifies the generated pattern.\n"
        "\n"
        "FOLDERs are folders of each node's own disk, below its data roots; %r in them stands for\n"
        "the node's rank, %% for a per cent sign. A relative one is taken from this working\n"
        "directory, on every node. The folder to write must not exist, or be empty, and appears\n"
        "when all is done.\n"
        "\n"
        "With --repeat, one call runs K exchanges, as a program in a loop would: all nodes meet\n"
        "at a barrier between each two, and nothing is prepared anew. The time is the median of\n"
        "their times, each from the start until the slowest node has its last block. 'sustained'\n"
        "is the time for each with everything between them included.\n"
        "\n"
        "In mode stepped, each node follows the steps of the algorithm; in mode streaming no step\n"
        "waits for another, which only all-port algorithms can do.\n"
        "\n"
        "Without --algorithm, the daemon predicts the time that each algorithm takes for blocks "
        "of\n"
        "this size (files count as 1 MiB), and takes the fastest. Predictions are made with what\n"
        "steps, messages and bytes cost on this torus, as 'torusctl calibrate' has measured it, "
        "or\n"
        "with default costs. --explain shows them: steps one after the other, messages that a "
        "node\n"
        "sends or passes on, blocks on the busiest channel, seconds.\n"
        "\n"
        "The efficiency compares the time with what the links' nominal rate allows at best.\n"
        "\n"
        "examples:\n"
        "  torusctl exchange --block-size 64KiB\n"
        "  torusctl exchange --algorithm at2 --block-size 1M --json\n"
        "  torusctl exchange --block-size 4K --explain\n"
        "  torusctl exchange --block-size 1K --repeat 100\n"
        "  torusctl exchange --from /data/out --to /data/in --timeout 60\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
