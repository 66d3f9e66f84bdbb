/* The options of the swarm. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_JOBS_MOST 64u

/* The options that --help describes. `first` is also the seed of --shrink, and the first one of today. */
struct options {
    uint64_t seeds, first, most_violations, jobs;
    uint64_t seconds;                                 /* 0: as long as it takes */
    bool has_first, today;                            /* --first was given; --today */
    const char *progress, *dims, *find;               /* NULL: not given */
    uint64_t no_request, no_fault, no_group, no_copy; /* bits */
    bool rates, json, twice, hashes, trace, shrink, list, help;
};

/* Reads the arguments. Ends the program after --help, with status 0, and after wrong arguments. */
void options_read(struct options *o, int argc, char **argv);

/* Prints the error, in which %s stands for `word`, and ends the program with status 2. */
void options_fail(const char *format, const char *word)
    __attribute__((format(printf, 1, 0), noreturn));
