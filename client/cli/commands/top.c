/* torusctl top: shows the torus while it works. */
#include <stddef.h>

#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/progress.h"
#include "client/cli/top/loop.h"
#include "client/cli/top/terminal.h"

#define LEAST_INTERVAL_MS 200u
#define MOST_INTERVAL_MS 3600000u

struct top_arguments {
    const char *interval;
    bool once;
};

static const struct option options[] = {
    {"--interval", "SECONDS", offsetof(struct top_arguments, interval),
     "ask all nodes at this interval; 1 by default, at least 0.2"},
    {"--once", NULL, offsetof(struct top_arguments, once),
     "print one view as text (or with --json as one line), and end"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct top_arguments *a = arguments;
    uint64_t interval = 1000;
    struct error e;

    if (a->interval != NULL && parse_seconds(a->interval, &interval, &e) != 0)
        return cli_fail_usage(cli, "--interval: %s", e.text);
    if (interval < LEAST_INTERVAL_MS || interval > MOST_INTERVAL_MS)
        return cli_fail_usage(cli, "--interval: from 0.2 to 3600 seconds are possible, not %s",
                              a->interval);
    const double seconds = (double)interval / 1000;
    long_work_end(); /* this command takes long, and shows what it does */
    if (cli->json && !a->once)
        return top_lines(cli, seconds);
    if (cli->json || a->once || !top_terminal_is_there())
        return top_once(cli, seconds);
    return top_interactive(cli, seconds);
}

const struct command command_top = {
    .name = "top",
    .summary = "Show all nodes, the load of all links, and what runs, while it runs",
    .usage = "[--interval SECONDS] [--once] [--json] [--socket PATH]",
    .options = options,
    .arguments_size = sizeof(struct top_arguments),
    .needs_daemon = true,
    .run = run,
};
