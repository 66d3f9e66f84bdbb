/* A trace file (tracing/trace_file.h), read again. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <torus/torus.h>

#include "daemon/lib/schedule/torus.h"
#include "daemon/lib/trace/link_load.h"
#include "proto/error.h"

/* What a port did in the whole run; seconds. */
struct port_time {
    uint32_t neighbour; /* TORUS_NO_NODE: there is none */
    double state[TORUS_TRACE_STATES];
    double bytes, resent;
    /* What the link itself held up; not known if the node runs a release that does not record it. */
    struct link_rate link;
    double no_room; /* the receiver had no room for more */
};

/* The time in which bytes were on the port's link, or waited for it. */
static inline double port_busy_time(const struct port_time *p)
{
    return p->state[TORUS_TRACE_LINK] + p->state[TORUS_TRACE_RESENDING];
}

struct trace_node_data {
    const char *name;
    bool traced, tells_loads; /* tells_loads: its release records what links held up */
    double began, ended;      /* seconds after the run began anywhere */
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
 * JSON, or no trace of torusctl. Everything about traced nodes in d->own (trace_file.c) is then well-formed: numbers,
 * as many of them as belong together, and neighbours as they are in the torus; names and d->id have no control
 * characters. */
int trace_data_read(struct trace_data *d, const char *path, struct error *e);
void trace_data_free(struct trace_data *d);
