/* The command line of torusd-discover. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/command_line/options.h"

#define DISCOVER_SOCKET "/run/torusd-discover/discover.sock"

struct discover_options {
    const char *interfaces; /* "all", or names separated by commas */
    const char *name;       /* NULL: that of the system */
    const char *socket;
    const char *setups; /* the socket of torusd-setup; NULL: this host accepts no setups */
    const char *key;    /* file of a cluster key to prove, without `setups`; NULL: none */
    bool show_id;       /* do only that */
};

/* The options, for the man page. */
extern const struct option discover_option_table[];

/* Reads the command line. Returns 0, or -1 with the exit code of the process, after it has printed the requested text,
 * or an error. */
int discover_options_read(int argc, char **argv, struct discover_options *o, int *exit_code);
