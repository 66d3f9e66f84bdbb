/* Finds out which hosts the sections of a cluster file are, before anything secret goes to them. Names only label: a
 * host is the one whose id the file has. */
#ifndef TORUSD_CLI_IDENTIFY_H
#define TORUSD_CLI_IDENTIFY_H

#include "client/cli/terminal/cli.h"
#include "daemon/cluster/cluster_file.h"

struct identify_options {
    const char *file;   /* the cluster file, into which ids are written */
    const char *host;   /* only this one; NULL: all */
    const char *socket; /* of the discovery process; NULL: the default */
    bool
        trust_cables; /* take all hosts that are found, without asking; for the first setup of a cluster */
    bool yes;         /* do not ask */
    bool dry_run; /* do not write the file */
};

/* Adds the ids that the cluster lacks, and writes them into the file: of this host, of hosts that have proved the cluster
 * key, and of hosts that the user has confirmed. Hosts that are not found stay without an id. Returns 0; or -1 with *e:
 * a host is not confirmed, or several have its name. *c may have been read again. */
int identify_hosts(struct cluster *c, const struct identify_options *o, const struct cli *cli,
                   struct error *e);

#endif
