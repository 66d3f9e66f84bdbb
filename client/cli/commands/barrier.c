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
    progress_begin(&progress);
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
    .options = options,
    .arguments_size = sizeof(struct arguments),
    .needs_daemon = true,
    .run = run,
};
