/* The command line of torus-routed. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/command_line/options.h"

struct routed_options {
    const char *socket;     /* of torusd */
    const char *addresses;  /* file */
    const char *state;      /* folder */
    const char *interface;  /* for the addresses of this host */
    const char *without;    /* links that routes avoid; NULL: none */
    const char *congestion; /* NULL: that of the machine */
    bool down;              /* remove everything, and end */
};

/* The options, for the man page. */
extern const struct option routed_option_table[];

/* Reads the command line. Returns 0, or -1 with the exit code of the process, after it has printed the requested text,
 * or an error. */
int routed_options_read(int argc, char **argv, struct routed_options *o, int *exit_code);
