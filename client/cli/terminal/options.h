/* Command lines from tables: the same rows parse the options and explain them. */
#ifndef TORUSD_CLI_OPTIONS_H
#define TORUSD_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/error.h"

/* One option. Where its name begins with "--" it is either a flag (sets a bool) or takes a value,
 * as "--name value" or "--name=value" (sets a const char *); other names are those of
 * positional arguments. */
struct option {
    const char *name;  /* NULL ends a table */
    const char *value; /* what its value is called, "PATH"; NULL for a flag */
    size_t offset;     /* of the bool or the const char * in the struct to fill */
    const char *help;
};

/* A table and the zeroed struct that it fills. */
struct option_set {
    const struct option *options;
    void *arguments;
};

/* Parses arguments until their end, or until a positional one that is not in a table. -h is short
 * for --help; "--" ends the options. Texts in the structs point into argv. Returns how many
 * arguments were used, or -1 with *e saying what is wrong. */
int options_parse(const struct option_set *sets, size_t count, int argc, char **argv,
                  struct error *e);

/* Prints the rows of a table, indented and aligned; help of several lines has them below each
 * other.
 */
void options_help(FILE *out, const struct option *options);

#endif
