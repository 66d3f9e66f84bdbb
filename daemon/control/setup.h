#ifndef TORUSD_CONTROL_SETUP_H
#define TORUSD_CONTROL_SETUP_H

#include <uv.h>

#include "daemon/copy/copy.h"
#include "daemon/exchange/exchange.h"
#include "daemon/files/places/roots.h"
#include "daemon/group/group.h"
#include "daemon/net/local/access.h"
#include "daemon/net/tcp/tcp.h"
#include "daemon/survey/survey.h"

/* The parts of the daemon that requests read or change; all pointers are borrowed. */
struct control_setup {
    uv_loop_t *loop;
    const char *path;
    struct router *router;
    struct exchanges *exchanges;
    struct groups *groups;
    struct copies *copies;
    struct shares *shares;
    struct survey *survey;
    const struct roots *roots;
    const struct access_rules *access;
    const struct endpoint *endpoint; /* by port */
    struct tcp *tcp;
    double link_mbit;
    uint64_t memory_budget;
    const char *metrics;         /* the address of metrics; "": none */
    struct route_counts *routes; /* filled with what torus-routed tells */
};

#endif
