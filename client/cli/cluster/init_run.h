/* The asking side of 'torusctl init': shows what changes on the hosts of a cluster, asks, and lets them change it. */
#pragma once

#include "client/cli/cluster/deliver.h"
#include "client/cli/terminal/cli.h"

struct init_options {
    const char *file;    /* the cluster file */
    const char *host;    /* only this host; NULL: all, or this machine with DELIVER_HERE */
    const char *without; /* hosts that are left out, separated by commas; NULL: none */
    const char *key;     /* the key file; NULL: the default */
    bool new_key;        /* change the key on all hosts */
    bool dry_run;        /* change nothing */
    bool yes;            /* do not ask */
    bool trust_cables;   /* take the hosts that are found for those of the file, in a new cluster */
    bool allow_less_safe; /* make changes that make a host less safe */
    bool no_wait;         /* do not wait for the torus at the end */
    bool here, ssh, links;
    const char *receive; /* the side of the host that is set up: "show" or "apply"; NULL: not */
    struct deliver_options deliver;
};

/* Runs it, and prints everything. Returns the exit code. */
int init_run(struct cli *cli, const struct init_options *o);
