/* torusctl barrier: waits until every node has entered the barrier. */
#include <stddef.h>

#include "client/cli/exchanging/barrier_report.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/progress.h"

struct arguments {
    const char *name;
    const char *timeout;
};

static const struct option options[] = {
    {"--name", "NAME", offsetof(struct arguments, name),
     "name of the barrier; barriers at the same time need different names"},
    {"--timeout", "SECONDS", offsetof(struct arguments, timeout),
     "fail at all nodes after SECONDS (default: days)"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct arguments *a = arguments;
    struct torus_result *result;
    struct torus_error failed;
    struct progress progress;
    uint64_t timeout_ms = 0;
    struct error e;
    int code, r;

    if (a->timeout != NULL && parse_seconds(a->timeout, &timeout_ms, &e) != 0)
        return cli_fail_usage(cli, "--timeout: %s", e.text);
    code = cli_connect(cli);
    if (code != EXIT_DONE)
        return code;
    progress_begin(&progress, true);
    interrupt_arm(cli->client);
    r = torus_client_barrier(cli->client, a->name, timeout_ms, progress_update, &progress, &result,
                             &failed);
    interrupt_disarm();
    progress_end(&progress);
    if (r != 0)
        return cli_fail_client(cli, &failed);
    json_t *value = barrier_report(result, a->name, !cli->json, &e);
    torus_result_free(result);
    return value != NULL ? cli_print(cli, value, &barrier_report_view) : cli_fail(cli, &e);
}

const struct command command_barrier = {
    .name = "barrier",
    .summary = "Wait until all nodes have reached the barrier",
    .usage = "[--name NAME] [--timeout SECONDS] [--json]",
    .details =
        "Run the command at every node. It ends at all nodes when the last node has started it,\n"
        "and then says how long it waited here, when each node came, and which one was last.\n"
        "Nodes share no clock: the times are by the clock of node 0, and a node seems to come\n"
        "later by the time that its messages take to get there, mostly below a millisecond.\n"
        "If one node gives up or cannot be reached, the barrier fails at all nodes.\n"
        "\n"
        "On a terminal, or with TORUS_PROGRESS=1, the command shows after a second which nodes\n"
        "it waits for, as far as this node knows; node 0 knows all of them.\n"
        "\n"
        "examples:\n"
        "  torusctl barrier\n"
        "  torusctl barrier --name before-measuring --timeout 60\n",
    .options = options,
    .arguments_size = sizeof(struct arguments),
    .needs_daemon = true,
    .run = run,
};
