/* Parses and explains command lines by tables of options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/error.h"

/* An option. If its name begins with "--", it is a flag (sets a bool) or has a value, given as "--name value" or
 * "--name=value" (sets a const char *). Any other name is that of a positional argument.
 *
 * If the name of the value, or of the positional argument, ends with "...", the option may be given several times, and
 * adds to a struct option_list. Several options may share one list, which keeps their order. */
struct option {
    const char *name;  /* NULL ends a table */
    const char *value; /* name of its value, "PATH"; NULL for a flag */
    size_t offset;     /* offset of the bool or const char * in the struct to fill */
    const char *help;
};

#define OPTION_LIST_MOST 512u

struct option_list {
    size_t count;
    struct option_given {
        const struct option *option;
        const char *text;
    } given[OPTION_LIST_MOST];
};

/* A table and the zeroed struct that it fills. */
struct option_set {
    const struct option *options;
    void *arguments;
};

/* Parses arguments until their end, or until a positional argument that is not in a table. -h is short for --help;
 * "--" ends the options. Texts in the structs point into argv. Returns the number of used arguments, or -1 with *e. */
int options_parse(const struct option_set *sets, size_t count, int argc, char **argv,
                  struct error *e);

/* Prints the rows of a table, indented and aligned. */
void options_help(FILE *out, const struct option *options);
