/* The metrics of a daemon. daemon/doc/monitoring.md lists them. */
#pragma once

#include "daemon/torusd/copy/copy.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/group/group.h"
#include "daemon/torusd/metrics/exposition.h"
#include "daemon/torusd/net/tcp.h"

/* The parts of the daemon that metrics are read from, and what is too expensive to be found for each request. */

#define VIEW_FAULTS_SIZE 4096u

/* What a node knows about the links of the whole torus. */
struct torus_view {
    bool known;
    uint64_t changes; /* topology.changes when it was found */
    uint32_t nodes_down, links_down;
    char faults[VIEW_FAULTS_SIZE]; /* lines for people; "": every link is up */
};

struct metrics_view {
    struct router *router;
    struct exchanges *exchanges;
    struct groups *groups;
    struct copies *copies;
    struct shares *shares;
    const struct route_counts *routes; /* what torus-routed tells */
    struct room *room;                 /* on the data roots */
    uv_loop_t *loop;
    const struct tcp *tcp; /* NULL: the interfaces of links are not known */
    /* As exchanges_setup.processor. */
    void (*processor)(void *context, uint64_t *used, uint64_t *delayed);
    void *processor_context;
    double started; /* seconds since 1970 */
    uint64_t scrapes,
        dropped; /* requests for metrics; connections that were closed to protect the daemon */
    struct torus_view torus;
};

/* Returns the state of the torus. Looks at all links only if something has changed since the last call. */
const struct torus_view *view_torus(struct metrics_view *v);

/* Write all metrics of a subject. */
void metrics_of_node(struct exposition *x, struct metrics_view *v);   /* and of the torus */
void metrics_of_links(struct exposition *x, struct metrics_view *v);  /* of this node's ports */
void metrics_of_routes(struct exposition *x, struct metrics_view *v); /* of torus-routed */
void metrics_of_room(struct exposition *x, struct metrics_view *v);   /* of the data roots */
void metrics_of_work(struct exposition *x, struct metrics_view *v); /* exchanges, groups, copies */
void metrics_of_process(struct exposition *x,
                        struct metrics_view *v); /* processor, memory, requests */
