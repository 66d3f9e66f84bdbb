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
     "ask all nodes so often; 1 by default, at least 0.2"},
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
    .details =
        "Draws the torus: nodes by their ranks, and links with their load, by line, number and\n"
        "colour. The load is the rate of the busier direction between two surveys, in per cent of\n"
        "link_mbit (torusd.ini); without it, of the fastest rate that was seen since the start.\n"
        "Below are exchanges, groups and copies with their progress, rate and remaining time,\n"
        "and faults with the names of the hosts; what is too long for a line goes on in the next\n"
        "one, and is whole in the details. Above at the right is how old the view is. Where there\n"
        "is room, the rates of the last surveys are shown, and the links on which packets are\n"
        "sent again, then those with the highest loads. A torus of three and more dimensions is\n"
        "drawn as planes; '/' below a node is the busiest link that leaves its plane. Networks of\n"
        "other graphs are a table. A torus that does not fit is scrolled.\n"
        "\n"
        "Keys: arrows or h, j, k, l choose a node; tab goes on to its links, and to what runs;\n"
        "enter shows details; space pauses; ? explains the keys; q leaves details, then top.\n"
        "\n"
        "If the daemon goes away, the view says so, and continues when the daemon is back. Nodes\n"
        "that do not answer have a '!'.\n"
        "\n"
        "Without a terminal, as with --once, one view is printed, with its time. On a terminal it\n"
        "has the width of that, and a torus that is wider is drawn in parts below each other.\n"
        "With --json there is a line for each survey until the reader closes the pipe: nodes with\n"
        "links and their rates (tx_bytes_per_second, tx_load ...; null if not known yet),\n"
        "exchanges, groups, copies and faults. A line with \"error\" says that the daemon does\n"
        "not answer.\n"
        "\n"
        "examples:\n"
        "  torusctl top\n"
        "  ssh node3 -t torusctl top --interval 2\n"
        "  torusctl top --once > now.txt\n"
        "  torusctl top --json | jq -c '.exchanges[] | [.id, .part, .left_seconds]'\n",
    .options = options,
    .arguments_size = sizeof(struct top_arguments),
    .needs_daemon = true,
    .run = run,
};
