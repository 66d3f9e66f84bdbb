/* The asking side of 'torusctl run' (torusrun): starts a program on many hosts by ssh, and ends it everywhere. */
#pragma once

#include "client/cli/running/run_hosts.h"
#include "client/cli/terminal/cli.h"
#include "daemon/lib/command_line/options.h"

struct run_options {
    struct run_choice hosts;
    struct option_list env;                /* NAME or NAME=VALUE */
    const char *folder;                    /* NULL: the folder of the caller */
    const char *user;                      /* for ssh; NULL: as ssh says */
    const char *ranks_per_node;            /* NULL: 1 */
    const char *timeout, *grace, *silence; /* seconds; NULL: the defaults */
    bool no_stdin, no_prefix, dry_run;
    bool receive; /* the side of a host */
};

/* Runs the program with its arguments, up to a NULL, and prints everything. Returns the exit code. */
int run_program(struct cli *cli, const struct run_options *o, char **program);
