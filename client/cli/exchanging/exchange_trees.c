#include "client/cli/exchanging/exchange_trees.h"

#include "client/cli/copying/copy_run.h"

/* The one source of such a copy is an option here. */
static const struct option from = {"--from", "FOLDER", 0, ""};

/* Returns the name of an option that only exchanges of blocks have and that is given, or NULL. */
static const char *misplaced(const struct exchange_arguments *a)
{
    return a->algorithm != NULL    ? "--algorithm"
           : a->q != NULL          ? "--q"
           : a->schedule != NULL   ? "--schedule"
           : a->block_size != NULL ? "--block-size"
           : a->repeat != NULL     ? "--repeat"
           : a->mode != NULL       ? "--mode"
           : a->explain            ? "--explain"
                                   : NULL;
}

int exchange_trees(struct cli *cli, const struct exchange_arguments *a)
{
    struct copy_arguments copy = {
        .sources = {.count = 1, .given = {{&from, a->from}}},
        .to = a->to,
        .on_failure = a->on_failure,
        .timeout = a->timeout,
        .delete = a->replace,
        .dry_run = a->dry_run,
        .per_node = a->per_node,
        .missing_ok = a->missing_ok,
        .trace = a->trace,
    };

    if (misplaced(a) != NULL)
        return cli_fail_usage(cli, "%s does not go with --trees: omit one of them", misplaced(a));
    if (a->from == NULL || a->to == NULL)
        return cli_fail_usage(cli, "--trees needs --from FOLDER and --to FOLDER: %s is missing",
                              a->from == NULL ? "--from" : "--to");
    return copy_run(cli, TORUS_COPY_EXCHANGE, &copy);
}
