/* A trace file (tracing/trace_file.h), read again. */
#ifndef TORUSD_CLI_TRACE_DATA_H
#define TORUSD_CLI_TRACE_DATA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <torus/torus.h>

#include "daemon/schedule/torus.h"
#include "proto/error.h"

/* What a port did in the whole run; seconds. */
struct port_time {
    uint32_t neighbour; /* TORUS_NO_NODE: there is none */
    double state[TORUS_TRACE_STATES];
    double bytes, resent;
    /* What it sent in the times in which it was busy for long without a pause. They tell the rate of the link: with
     * short messages, a port is busy until they are acknowledged, and carries little. */
    double long_time, long_bytes;
};

struct trace_node_data {
    const char *name;
    bool traced;
    double began, ended; /* seconds after the run began anywhere */
    struct port_time port[TORUS_MAX_PORTS];
    double used, delayed; /* seconds */
    json_t *events;       /* [seconds, torus_trace_event, a, b]; NULL: not traced; borrowed */
};

struct trace_data {
    json_t *file, *own; /* `own`: the member "torusd"; borrowed from `file` */
    struct torus torus;
    const char *id;
    double seconds, clock_error;
    struct trace_node_data *node; /* by rank */
};

/* Reads a file. Returns 0 with *d, which the caller gives to trace_data_free(), or -1 with *e: it cannot be read, is no
 * JSON, or no trace of torusctl. All that is said of traced nodes in d->own (trace_file.c) is then well-formed: numbers,
 * as many of them as belong together, and neighbours as they are in the torus; names and d->id have no control
 * characters. */
int trace_data_read(struct trace_data *d, const char *path, struct error *e);
void trace_data_free(struct trace_data *d);

#endif
