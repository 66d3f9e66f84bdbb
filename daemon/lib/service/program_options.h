/* The command line of a small program: options in a table, from which its --help and its man page are made. */
#pragma once

#include "proto/error.h"

struct program_option {
    const char *name, *value, *help; /* value NULL: it has none */
};

/* The last rows of each table. */
#define PROGRAM_OPTIONS_END                                                                        \
    {"log-level", "LEVEL", "error, warning, info or debug (default: info)"},                       \
        {"help", NULL, "print this text"}, {"version", NULL, "print the version"},                 \
    {                                                                                              \
        0                                                                                          \
    }

struct program_options {
    const char *program;
    const char *head, *tail;             /* of --help, around the options */
    const struct program_option *option; /* ends with PROGRAM_OPTIONS_END */
    /* Takes an option, by its index in the table, that is none of the last rows. Returns 0, or -1 with *e, which names
     * what is wrong with the value. */
    int (*set)(void *context, int option, const char *value, struct error *e);
};

/* Reads the command line. Returns 0, or -1 with the exit code of the process, after it has printed the requested text,
 * or an error. */
int program_options_read(const struct program_options *options, int argc, char **argv,
                         void *context, int *exit_code);

/* Prints why options do not go together. Returns the exit code for that. */
int program_options_fail(const struct program_options *options, const struct error *e);
