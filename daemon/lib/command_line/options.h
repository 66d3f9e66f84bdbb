/* The command lines of all programs: tables of options, which the parser works from, and from which --help, the man
 * pages and the completions are made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/error.h"

/* An option. If its name begins with "--", it is a flag (sets a bool) or has a value, given as "--name value" or
 * "--name=value" (sets a const char *). Any other name is that of a positional argument. Names are not abbreviated.
 *
 * If the name of the value, or of the positional argument, ends with "...", the option may be given several times, and
 * adds to a struct option_list. Several options may share one list, which keeps their order. */
struct option {
    const char *name;  /* NULL ends a table */
    const char *value; /* name of its value, "PATH"; NULL for a flag */
    size_t offset;     /* offset of the bool or const char * in the struct to fill */
    const char *help;
};

/* An option of a command line, and its value; NULL: a flag. */
struct option_given {
    const struct option *option;
    const char *text;
};

#define OPTION_LIST_MOST 512u

struct option_list {
    size_t count;
    struct option_given given[OPTION_LIST_MOST];
};

/* A table and the struct that it fills; positional arguments in it are NULL at first. */
struct option_set {
    const struct option *options;
    void *arguments;
};

/* Parses arguments until their end, or until a positional argument that is not in a table. -h is short for --help;
 * "--" ends the options. Texts in the structs point into argv. Returns the number of used arguments, or -1 with *e. */
int options_parse(const struct option_set *sets, size_t count, int argc, char **argv,
                  struct error *e);

/* Parses as options_parse() does, and stores nothing in structs: lists the options in their order in given[], which has
 * room for `argc`. */
int options_list(const struct option *options, int argc, char **argv, struct option_given *given,
                 size_t *count, struct error *e);

/* Prints the rows of a table, indented and aligned. */
void options_help(FILE *out, const struct option *options);

/* --- the closest known word, for "did you mean ...?" --- */

struct suggestion {
    const char *word; /* the word that was given; set by the caller */
    const char *best; /* the closest known word, or NULL if none is close */
    unsigned distance;
};

/* Compares a known word, and keeps it if it is the closest. */
void suggest(struct suggestion *s, const char *known);

/* --- programs that take options only --- */

/* The last rows of --help of such a program. */
extern const struct option program_options_of_all[];

struct program_options {
    const char *program;
    const char *head, *tail; /* of --help, around the options */
    const struct option *option;
};

/* Reads the command line into a struct. Returns 0, or -1 with the exit code of the process, after it has printed the
 * requested text, or an error. */
int program_options_read(const struct program_options *options, int argc, char **argv,
                         void *arguments, int *exit_code);

/* Print why an option's value is not possible, or why options do not go together, and set the exit code for that.
 * Return -1. */
int program_options_refuse(const struct program_options *options, const char *option,
                           const char *value, struct error *e, int *exit_code);
int program_options_fail(const struct program_options *options, const struct error *e,
                         int *exit_code);
