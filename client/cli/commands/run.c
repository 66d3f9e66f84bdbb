/* torusctl run, which is also called torusrun: runs a program on all hosts. */
#include <stddef.h>
#include <stdlib.h>

#include "client/cli/cluster/host_files.h"
#include "client/cli/running/host_side.h"
#include "client/cli/running/run.h"
#include "client/cli/terminal/command.h"

static const struct option options[] = {
    {"--hosts", "FILE", offsetof(struct run_options, hosts.file),
     "the cluster file, or a list of hosts, one a line (default:\n$TORUS_HOSTS or " CLUSTER_FOLDER
     "/cluster.ini)"},
    {"--only", "LIST", offsetof(struct run_options, hosts.only),
     "run on these hosts only, such as alpha,beta"},
    {"--without", "LIST", offsetof(struct run_options, hosts.without), "leave out these hosts"},
    {"--ranks-per-node", "N", offsetof(struct run_options, ranks_per_node),
     "processes on each host (default: 1)"},
    {"--env", "NAME[=VALUE]...", offsetof(struct run_options, env),
     "set this variable, or pass on the one that is set here; may be given\nseveral times"},
    {"--folder", "DIR", offsetof(struct run_options, folder),
     "where the program starts on each host (default: the folder in which\nyou are)"},
    {"--user", "NAME", offsetof(struct run_options, user),
     "user on the hosts (default: the one that ssh takes, usually you)"},
    {"--torus-ip", NULL, offsetof(struct run_options, hosts.torus_ip),
     "reach the hosts by their addresses on the torus, over the cables"},
    {"--no-stdin", NULL, offsetof(struct run_options, no_stdin),
     "give no process standard input (default: rank 0 has it)"},
    {"--no-prefix", NULL, offsetof(struct run_options, no_prefix),
     "print output as it comes, without the names of the hosts"},
    {"--timeout", "SECONDS", offsetof(struct run_options, timeout),
     "how long the hosts may take until all are ready (default: 30)"},
    {"--grace", "SECONDS", offsetof(struct run_options, grace),
     "how long processes may take to end after a signal, until they are\nkilled (default: 10)"},
    {"--silence", "SECONDS", offsetof(struct run_options, silence),
     "after how long without a sign of life a host, or this program, counts\nas lost (default: "
     "30)"},
    {"--dry-run", NULL, offsetof(struct run_options, dry_run),
     "print what would be run, and run nothing"},
    {"--receive", NULL, offsetof(struct run_options, receive),
     "used on the other hosts: run what standard input orders"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    struct run_options o = *(const struct run_options *)arguments;

    if (o.receive)
        return host_side_run();
    if (cli->rest == NULL || cli->rest[0] == NULL)
        return cli_fail_usage(cli, "the program is missing: torusrun [options] -- PROGRAM "
                                   "[ARGUMENT...]");
    if (o.hosts.file == NULL)
        o.hosts.file = getenv("TORUS_HOSTS");
    if (o.hosts.file == NULL)
        o.hosts.file = host_file_kinds[HOST_FILE_CLUSTER].path;
    return run_program(cli, &o, cli->rest);
}

const struct command command_run = {
    .name = "run",
    .summary = "Run a program on all hosts, by ssh",
    .usage = "[--hosts FILE] [--only LIST] [--env NAME[=VALUE]] [--dry-run] [--json]\n"
             "           [--] PROGRAM [ARGUMENT...]",
    .options = options,
    .arguments_size = sizeof(struct run_options),
    .takes_rest = true,
    .run = run,
};
