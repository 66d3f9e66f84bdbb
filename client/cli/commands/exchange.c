/* torusctl exchange: runs a complete exchange and reports what it took. */
#include <stddef.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/exchanging/exchange_run.h"

static const struct option options[] = {
    {"--algorithm", "NAME", offsetof(struct exchange_arguments, algorithm),
     "one of 'torusctl algorithms' (default: auto, the one predicted to be fastest)"},
    Q_OPTION(exchange_arguments),
    SCHEDULE_OPTION,
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "exchange a generated pattern, SIZE bytes per destination"},
    {"--from", "FOLDER", offsetof(struct exchange_arguments, from),
     "exchange files: send FOLDER/5 to node 5"},
    MOVING_OPTIONS(
        "if nodes are down: fail, shrink: leave them out, or wait for them (default: fail)"),
    {"--explain", NULL, offsetof(struct exchange_arguments, explain),
     "first list what auto chooses from, with the predicted times"},
    {"--dry-run", NULL, offsetof(struct exchange_arguments, dry_run),
     "only list that; exchange nothing"},
    FINAL_OPTIONS,
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
        "have received and committed everything, or when the exchange has failed at all of them.\n"
        "Ctrl-C cancels it. On a terminal it shows how far it is; with TORUS_PROGRESS=1 also\n"
        "elsewhere, a line every ten seconds on standard error.\n"
        "\n"
        "SIZE is in bytes, or with a unit: K or KiB (1024), M, MiB, G, GiB, KB (1000), MB, GB. 0 "
        "is\n"
        "allowed. Every destination verifies the generated pattern.\n"
        "\n"
        "A FOLDER is on each node's own disk, below its data roots; %r in it stands for the "
        "node's\n"
        "rank and %% for a per cent sign. A relative one starts from this working directory, on\n"
        "every node. The folder to write must not exist or be empty; it appears when all nodes "
        "are\n"
        "done. Other files in the folder to read are not sent: a warning and the report count "
        "them\n"
        "(unused files), and with --missing-ok also those that are not there (missing files).\n"
        "With --replace it may also hold an old result, which is nothing but files named by\n"
        "ranks: the new one takes its place on all nodes or on none, and the old one is removed.\n"
        "The result keeps the owner, group, mode and access-control lists of a folder that was\n"
        "there; without one, torusd's setting output_mode says who may use it (0700: only its "
        "user).\n"
        "\n"
        "If it cannot be said whether the exchange was committed, because the daemon or a node "
        "was\n"
        "cut off at the end, the exit status is 4. The nodes settle this by themselves once the\n"
        "torus is whole again; 'torusctl status' shows how.\n"
        "\n"
        "With --on-failure shrink, the exchange does not fail by a node that is down, or goes "
        "down\n"
        "meanwhile (none of its links is up): the others complete it among themselves, and the\n"
        "report lists who is missing. Nothing is sent to missing nodes, and nothing is expected "
        "of\n"
        "them, no files either. If a node goes down meanwhile, the exchange begins anew. The node\n"
        "that is asked must stay, and those that are left must reach each other. Nodes that "
        "return\n"
        "take part in the next exchange. Only with algorithm auto.\n"
        "\n"
        "With --on-failure wait, the exchange waits within its --timeout (default: an hour each\n"
        "time) for nodes that are down and links that it cannot go around, and begins again: a\n"
        "restart of daemons does not fail it. Repetitions that are complete are not run again. If\n"
        "the daemon that was asked is restarted, torusctl asks it again, except with --schedule. "
        "Of\n"
        "files it does so only if the daemon has said, as it was stopped, that nothing had been\n"
        "decided; after a crash that is not known, and the exit status is 4. Once it is decided "
        "to\n"
        "commit, nodes that go down are waited for until their files are in place.\n"
        "\n"
        "With --repeat, one command runs K exchanges as a program does in a loop: all nodes meet "
        "at\n"
        "a barrier after each one, and the exchange is prepared once. The time is the median; "
        "each\n"
        "is taken from the start until the slowest node has its last block. 'sustained' is the "
        "time\n"
        "per exchange with everything between them included.\n"
        "\n"
        "In stepped mode, each node follows the steps of the algorithm. In streaming mode, no "
        "step\n"
        "waits for another; only all-port algorithms can do that.\n"
        "\n"
        "Without --algorithm, the daemon predicts how long each algorithm takes for blocks of "
        "this\n"
        "size, or for the files by their mean and largest size, and uses the fastest. It predicts\n"
        "with the costs of a step, a message and a byte on this torus that 'torusctl calibrate' "
        "has\n"
        "measured, or with default costs. --explain shows, for each: the steps on the longest "
        "path,\n"
        "the messages that a node sends or relays, the blocks on the busiest channel, and the\n"
        "seconds (of files, whose sizes are not known yet, for 1 MiB each).\n"
        "\n"
        "--algorithm cccube --q 5 runs cccube in 5 packets, --q best in the number predicted to "
        "be\n"
        "the fastest. cccube-q5 and cccube-best are the same.\n"
        "\n"
        "With --schedule, the exchange follows anybody's routes: a file in the format of "
        "'torusctl\n"
        "plan --export torusd', or MSCCL's XML for alltoall. It is verified here, sent to all "
        "nodes,\n"
        "and verified by each of them; all know it by its SHA-256, of which the report shows the\n"
        "first digits.\n"
        "\n"
        "The efficiency compares the time with the lower bound at the nominal rate of the links.\n"
        "\n"
        "examples:\n"
        "  torusctl exchange --block-size 64KiB\n"
        "  torusctl exchange --algorithm at2 --block-size 1M --json\n"
        "  torusctl exchange --algorithm cccube --q best --block-size 1K\n"
        "  torusctl exchange --block-size 4K --explain\n"
        "  torusctl exchange --block-size 1K --repeat 100\n"
        "  torusctl exchange --schedule mine --mode streaming --block-size 64KiB\n"
        "  torusctl exchange --from /data/out --to /data/in --timeout 60\n"
        "  torusctl exchange --from /data/out --to /data/in --on-failure shrink\n"
        "  torusctl exchange --block-size 1K --repeat 100000 --on-failure wait\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
