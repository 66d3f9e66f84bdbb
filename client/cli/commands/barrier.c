/* torusctl barrier: waits until it has been called at every node. */
#include <stddef.h>

#include "client/cli/exchanging/exchange_run.h"

static const struct option options[] = {
    {"--name", "NAME", offsetof(struct exchange_arguments, name),
     "tells barriers apart that are used at the same time"},
    {"--timeout", "SECONDS", offsetof(struct exchange_arguments, timeout),
     "give up after SECONDS, at all nodes (default: days)"},
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
        "Run it at every node: it ends at all of them when it has been started at the last "
        "one. If\n"
        "one gives up or cannot be reached, it fails at all of them.\n"
        "\n"
        "On a terminal, or with TORUS_PROGRESS=1, it says after a second which nodes it waits\n"
        "for, as far as they are known here; node 0 knows all of them.\n"
        "\n"
        "examples:\n"
        "  torusctl barrier\n"
        "  torusctl barrier --name before-measuring --timeout 60\n",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
