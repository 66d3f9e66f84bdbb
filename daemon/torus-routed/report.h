/* What 'torusctl routes' shows. */
#pragma once

#include <jansson.h>

#include "daemon/torus-routed/installer.h"
#include "daemon/torus-routed/states.h"

struct report_of {
    const struct host_addresses *hosts;
    const struct states *states;
    const struct route_planner *planner; /* NULL: nothing was heard from the daemon yet */
    const struct installer *installer;
    const char *firewall; /* what is known about it */
    const char *problem;  /* what keeps routes from being set; "": nothing */
    uint64_t now;         /* in the time of the planner, milliseconds */
};

/* Returns the report, or NULL if memory is short. */
json_t *report_make(const struct report_of *r);

struct report_client;

/* Sends a report to every process that connects to the socket at `path`. The caller sets loop, path, make and context;
 * the rest is zero. */
struct report_server {
    uv_loop_t *loop;
    const char *path;
    json_t *(*make)(void *context);
    void *context;
    uv_pipe_t pipe;
    bool open;
    struct report_client *first;
    unsigned clients;
};

/* Returns 0, or -1 with *e. No other process may serve the socket: the caller makes sure. */
int report_serve(struct report_server *s, struct error *e);
void report_stop(struct report_server *s);
