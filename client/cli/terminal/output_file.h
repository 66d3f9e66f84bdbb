/* Writes a file completely or not at all. */
#pragma once

#include <stdio.h>

#include "proto/error.h"

struct output_file {
    FILE *stream;     /* the caller writes to it */
    char *path;       /* final path, with links followed; NULL: standard output */
    char *unfinished; /* path until it is finished; NULL: written directly to `path` */
};

/* Opens a file for writing. "-" is standard output. A file that is not regular (/dev/stdout, a pipe) is written
 * directly. Any other file is written under a temporary name, and gets its name, or replaces an existing file, when
 * it is finished. Links are followed; the new file has the mode and the owner of the one that it replaces. Returns 0
 * with *f, which the caller passes to output_file_finish() or output_file_give_up(), or -1 with *e, which names the
 * file. */
int output_file_open(struct output_file *f, const char *path, struct error *e);

/* Closes the file and gives it its name. Returns 0, or -1 with *e, which names the file, if it could not be written;
 * then the temporary file has been removed. Standard output stays open, and the program checks it at its end. */
int output_file_finish(struct output_file *f, struct error *e);

/* Closes a file that does not get its name: what is there stays as it is. */
void output_file_give_up(struct output_file *f);
