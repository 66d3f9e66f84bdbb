/* What the programs of all hosts print, on one standard output or error, without waiting for its reader. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

#define RUN_OUTPUT_MOST (512u << 10) /* more does not have to wait here */

struct run_output {
    int fd;
    bool own;    /* `fd` was opened here, so that writing does not block */
    bool broken; /* nobody reads it any more */
    struct frame_stream waiting;
};

/* The beginning of a line of one process. */
struct run_line {
    char *text;
    size_t length;
};

void run_output_open(struct run_output *o, int fd);
/* Writes what its reader takes now. */
void run_output_write(struct run_output *o);
/* Drops what waits, and closes. */
void run_output_close(struct run_output *o);

/* Adds bytes of a process. With a prefix, whole lines are written, each behind the prefix; NULL: the bytes as they are.
 * What ends with a carriage return is a line, too. */
void run_output_add(struct run_output *o, const char *prefix, struct run_line *line,
                    const uint8_t *bytes, size_t length);
/* The process has ended: writes the beginning of a line that it has left, and frees it. */
void run_output_end(struct run_output *o, const char *prefix, struct run_line *line);
