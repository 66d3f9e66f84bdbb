/* A file that is written whole or not at all. */
#ifndef TORUSD_CLI_OUTPUT_FILE_H
#define TORUSD_CLI_OUTPUT_FILE_H

#include <stdio.h>

#include "proto/error.h"

struct output_file {
    FILE *stream;     /* write here */
    char *path;       /* where it goes, links followed; NULL: standard output */
    char *unfinished; /* where it is until then; NULL: already there */
};

/* Opens a file to be written: "-" is standard output, which stays open. Whatever is no regular file
 * (/dev/stdout, a pipe) is written to directly; any other only takes its name, or an existing
 * file's place, once it is finished. Returns 0, or -1 with *e naming the file and nothing to
 * finish. */
int output_file_open(struct output_file *f, const char *path, struct error *e);

/* Closes it and puts it in its place. Returns 0; -1 with *e naming the file if it could not be
 * written, what was written being removed then. Standard output is left to the program, which
 * looks after it at its end. */
int output_file_finish(struct output_file *f, struct error *e);

#endif
