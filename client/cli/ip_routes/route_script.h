/* The shell script that sets the routes of one node, and undoes that. */
#ifndef TORUSD_CLI_ROUTE_SCRIPT_H
#define TORUSD_CLI_ROUTE_SCRIPT_H

#include <stdio.h>

#include "client/cli/ip_routes/hosts_file.h"

struct route_script {
    const struct ip_routes *routes;
    const struct host *hosts; /* by rank */
    const char *state;        /* folder on the host, for what has to be restored */
    const char *congestion;   /* of connections over the routes; NULL: the host's default */
};

/* Prints the script of a node; ferror(out) tells whether it could be written. */
void route_script_print(FILE *out, const struct route_script *s, uint32_t rank);

#endif
