/* Finds out which hosts the sections of a cluster file are, before anything secret goes to them. Names only label: a
 * host is the one whose id the file has. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/cluster/cluster_file.h"

struct identify_options {
    const char *file;   /* the cluster file, into which ids are written */
    const char *host;   /* only this one; NULL: all */
    const char *socket; /* of the discovery process; NULL: the default */
    bool trust_cables;  /* in the first setup of a cluster: take all hosts that are found */
    bool yes;           /* do not ask */
    bool dry_run;       /* do not write the file */
};

/* Adds missing ids to the cluster and to its file: those of this host, of hosts that have proved the cluster key, and
 * of hosts that the user confirms. Hosts that are not found stay without an id. *c is read again if its text changes.
 * Returns 0, or -1 with *e: a host was not confirmed, or several hosts have its name. */
int identify_hosts(struct cluster *c, const struct identify_options *o, const struct cli *cli,
                   struct error *e);
