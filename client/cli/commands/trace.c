/* torusctl trace: writes what all nodes have recorded of the last traced run. */
#include <stddef.h>

#include "client/cli/terminal/command.h"
#include "client/cli/tracing/trace_file.h"

struct trace_arguments {
    const char *file;
};

static const struct option options[] = {
    {"FILE", NULL, offsetof(struct trace_arguments, file),
     "the file to write; '-' is standard output"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct trace_arguments *a = arguments;

    if (a->file == NULL)
        return cli_fail_usage(cli, "name the file to write: torusctl trace FILE");
    int code = cli_connect(cli);
    return code != EXIT_DONE ? code : trace_file_write(cli, a->file, NULL, NULL);
}

const struct command command_trace = {
    .name = "trace",
    .summary = "Write what all nodes did in the last traced run",
    .usage = "FILE [--socket PATH]",
    .details =
        "A traced run is an exchange or copy with --trace, or a group of programs opened with\n"
        "TORUS_TRACE=1 in the environment of all of them. In such a run every node records, for\n"
        "each of its ports, what the port did or waited for: the link, packets that TCP sent\n"
        "again, a file or program here, a disk here, other nodes, the end of a round, a call of\n"
        "programs, a processor. It also records bytes, queues, processor time, phases, steps,\n"
        "rounds, calls, and links that went down. Nodes keep this of the last two traced runs.\n"
        "\n"
        "A record has a fixed size: 512 intervals, at first of a millisecond. When these are "
        "full,\n"
        "pairs of them are joined, so a long run is recorded completely, but less finely.\n"
        "\n"
        "Clocks of the nodes are compared by the heartbeats on their links, so that all times are\n"
        "on the clock of the asked node. The file says how wrong that may be (clock_error).\n"
        "\n"
        "FILE is JSON for Chrome's trace viewer and for Perfetto (ui.perfetto.dev, which also "
        "works\n"
        "offline): a process for each node, a track for each port, counters. 'torusctl report "
        "FILE'\n"
        "makes a page that says where the time went.\n"
        "\n"
        "examples:\n"
        "  torusctl trace program.json   (after: TORUS_TRACE=1 mpiexec ... ./program)\n"
        "  torusctl exchange --block-size 1MiB --trace exchange.json\n",
    .options = options,
    .arguments_size = sizeof(struct trace_arguments),
    .needs_daemon = true,
    .run = run,
};
