/* The shell script that sets and removes the routes of one node. */
#pragma once

#include <stdio.h>

#include "daemon/lib/cluster/hosts_file.h"

struct route_script {
    const struct ip_routes *routes;
    const struct host *hosts; /* by rank */
    const char *state;      /* folder on the host in which the script saves the previous settings */
    const char *congestion; /* congestion control over the routes; NULL: the host's default */
};

/* Prints the script of a node. The caller checks ferror(out). */
void route_script_print(FILE *out, const struct route_script *s, uint32_t rank);
