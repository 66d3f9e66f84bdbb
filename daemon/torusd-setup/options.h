/* The command line of torusd-setup. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/command_line/options.h"

struct setup_options {
    const char *socket, *state;
    const char *config; /* the settings of this host's daemon, which may be missing; NULL: none */
    const char *key, *second_key; /* files of cluster keys, which may be missing; NULL: none */
    const char *command;          /* for setups */
    const char *reader_name;      /* NULL: the user of this process */
    uint32_t reader;              /* uid of the discovery process */
    bool open;                    /* do only that */
};

/* The options, for the man page. */
extern const struct option setup_option_table[];

/* Reads the command line. Returns 0, or -1 with the exit code of the process, after it has printed the requested text,
 * or an error. */
int setup_options_read(int argc, char **argv, struct setup_options *o, int *exit_code);
