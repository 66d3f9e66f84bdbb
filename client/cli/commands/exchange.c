/* torusctl exchange: runs a complete exchange and reports its time and traffic. */
#include <stddef.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/exchanging/exchange_run.h"

static const struct option options[] = {
    {"--algorithm", "NAME", offsetof(struct exchange_arguments, algorithm),
     "one of 'torusctl algorithms' (default: auto, the shortest predicted time)"},
    Q_OPTION(exchange_arguments),
    SCHEDULE_OPTION,
    {"--block-size", "SIZE", offsetof(struct exchange_arguments, block_size),
     "exchange a generated pattern, with SIZE bytes for each destination"},
    {"--from", "FOLDER", offsetof(struct exchange_arguments, from),
     "exchange files: send FOLDER/5 to node 5"},
    {"--trees", NULL, offsetof(struct exchange_arguments, trees),
     "FOLDER/5 may be a folder, and is sent with everything in it"},
    MOVING_OPTIONS("what to do if nodes are down: fail, shrink (leave them out), or wait for "
                   "them\n(default: fail)"),
    {"--explain", NULL, offsetof(struct exchange_arguments, explain),
     "first list the algorithms that auto chooses from, with their predicted\n"
     "times"},
    {"--dry-run", NULL, offsetof(struct exchange_arguments, dry_run),
     "list the algorithms that auto chooses from, and exchange nothing;\n"
     "with --trees: say what would be done, and change nothing"},
    FINAL_OPTIONS,
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct exchange_arguments *a = arguments;

    return a->trees ? exchange_trees(cli, a) : exchange_run(cli, TORUS_EXCHANGE, a);
}

const struct command command_exchange = {
    .name = "exchange",
    .summary = "Run a complete exchange on the whole torus",
    .usage = "--block-size SIZE | --from FOLDER --to FOLDER [--trees] [options]",
    .details =
        "Every node sends a different block to every other node. The command ends when all\n"
        "nodes have received and committed all blocks, or when the exchange has failed at all\n"
        "nodes. Ctrl-C cancels the exchange. On a terminal, the command shows its progress.\n"
        "Elsewhere, it does so with TORUS_PROGRESS=1: it prints a line to standard error every\n"
        "ten seconds.\n"
        "\n"
        "SIZE is a number of bytes, or has a unit: K or KiB (1024), M, MiB, G, GiB, KB (1000),\n"
        "MB, GB. 0 is allowed. Every destination verifies the generated pattern.\n"
        "\n"
        "A FOLDER is on the disk of each node, below its data roots. %r in its name stands for\n"
        "the rank of the node, %% for a per cent sign. A relative name starts from the working\n"
        "directory of this command, on every node. The folder to write must be missing or\n"
        "empty, and appears when all nodes are done. In the folder to read, files whose names\n"
        "are not ranks are not sent: torusctl warns, and the report counts them (unused files).\n"
        "With --missing-ok the report also counts missing files.\n"
        "\n"
        "With --replace, the folder to write may also hold an old result, which consists of\n"
        "files named by ranks only. The new result replaces the old one on all nodes or on\n"
        "none, and the old one is removed. If there was a folder, the result keeps its owner,\n"
        "group, mode and access-control lists. If there was none, torusd's setting output_mode\n"
        "says who may use the result (0700: only torusd's user).\n"
        "\n"
        "With --trees, FOLDER/5 may be a folder as well as a file, and node 5 receives it with\n"
        "everything in it, as 'torusctl copy' copies it: links, holes, permissions and times are\n"
        "preserved, and what a node has already is not sent. The folder to write may hold\n"
        "anything. What the source lacks stays there, or is removed with --replace. If\n"
        "FOLDER/5 is missing, that is an error for node 5; with --missing-ok, node 5 keeps what\n"
        "it has. Each pair of nodes succeeds or fails on its own, with exit status 1 if any\n"
        "fails. Options of algorithms and blocks do not go with --trees.\n"
        "\n"
        "The exit status is 4 if it is not known whether the exchange was committed, because\n"
        "the daemon or a node was cut off at the end. The nodes find the outcome by themselves\n"
        "when the torus is whole again; 'torusctl status' shows it.\n"
        "\n"
        "With --on-failure shrink, the exchange leaves out nodes that are down, or go down\n"
        "while it runs (a node is down if none of its links is up). The other nodes complete it\n"
        "among themselves, and the report lists the missing nodes. Missing nodes send nothing,\n"
        "receive nothing, and write no files. If a node goes down while the exchange runs, the\n"
        "exchange is retried without it. The node that was asked must stay up, and the nodes\n"
        "that are left must reach each other. A node that returns takes part in the next\n"
        "exchange. shrink needs algorithm auto.\n"
        "\n"
        "With --on-failure wait, the exchange waits for nodes that are down, and for links that\n"
        "it cannot avoid, and is then retried: a restart of daemons does not fail it. It waits\n"
        "within its --timeout (default: an hour each time). Repetitions that all nodes have\n"
        "completed are not run again. If the daemon that was asked is restarted, torusctl\n"
        "repeats the request, except with --schedule. torusctl repeats a request for files only\n"
        "if the daemon has reported, when it was stopped, that nothing was decided. After a\n"
        "crash this is not known, and the exit status is 4. After the decision to commit, the\n"
        "command waits for nodes that go down until their files are in place.\n"
        "\n"
        "With --repeat, one command runs K exchanges as a program does in a loop: the exchange\n"
        "is prepared once, and a barrier follows each repetition. The time of a repetition is\n"
        "from its start until the slowest node has its last block. The report shows the median\n"
        "of all repetitions. 'sustained' is the time per repetition, including the barriers.\n"
        "\n"
        "In stepped mode, each node follows the steps of the algorithm. In streaming mode, no\n"
        "step waits for another step; only all-port algorithms can stream.\n"
        "\n"
        "Without --algorithm, the daemon predicts how long each algorithm takes for blocks of\n"
        "this size, or for files by their mean and largest size, and uses the fastest. The\n"
        "prediction uses the costs of a step, a message and a byte on this torus that 'torusctl\n"
        "calibrate' has measured, or default costs. --explain shows for each algorithm the\n"
        "steps on the longest path, the messages that a node sends or relays, the blocks on the\n"
        "busiest channel, and the predicted seconds (for files, the seconds for blocks of 1\n"
        "MiB: the sizes are not known yet).\n"
        "\n"
        "--algorithm cccube --q 5 runs cccube in 5 packets, --q best in the number of packets\n"
        "with the shortest predicted time. The names cccube-q5 and cccube-best mean the same.\n"
        "\n"
        "With --schedule, the exchange follows the routes in a file. The file has the format of\n"
        "'torusctl plan --export torusd', or is MSCCL's XML for alltoall. torusctl verifies it\n"
        "and sends it to all nodes, and each node verifies it again. The report shows the first\n"
        "digits of its SHA-256.\n"
        "\n"
        "The efficiency compares the time with the lower bound at the nominal rate of the\n"
        "links.\n"
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
        "  torusctl exchange --from /data/out --to /data/in --trees --dry-run\n"
        "  torusctl exchange --block-size 1K --repeat 100000 --on-failure wait\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
