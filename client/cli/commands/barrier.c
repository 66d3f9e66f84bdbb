/* torusctl barrier: waits until every node has entered the barrier. */
#include <stddef.h>

#include "client/cli/exchanging/exchange_run.h"

static const struct option options[] = {
    {"--name", "NAME", offsetof(struct exchange_arguments, name),
     "name of the barrier; barriers at the same time need different names"},
    {"--timeout", "SECONDS", offsetof(struct exchange_arguments, timeout),
     "fail at all nodes after SECONDS (default: days)"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return exchange_run_barrier(cli, arguments);
}

extern const struct command command_barrier;
const struct command command_barrier = {
    .name = "barrier",
    .summary = "Wait until all nodes have reached the barrier",
    .usage = "[--name NAME] [--timeout SECONDS] [--json]",
    .details =
        "Run the command at every node. It ends at all nodes when the last node has started it.\n"
        "If one node gives up or cannot be reached, the barrier fails at all nodes.\n"
        "\n"
        "On a terminal, or with TORUS_PROGRESS=1, the command shows after a second which nodes\n"
        "it waits for, as far as this node knows; node 0 knows all of them.\n"
        "\n"
        "examples:\n"
        "  torusctl barrier\n"
        "  torusctl barrier --name before-measuring --timeout 60\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
