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
    return exchange_run(cli, TORUS_EXCHANGE, arguments);
}

const struct command command_exchange = {
    .name = "exchange",
    .summary = "Run a complete exchange on the whole torus",
    .usage = "--block-size SIZE | --from FOLDER --to FOLDER [--trees] [options]",
    .options = options,
    .arguments_size = sizeof(struct exchange_arguments),
    .needs_daemon = true,
    .run = run,
};
