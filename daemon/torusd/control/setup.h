#pragma once

#include <uv.h>

#include "daemon/lib/net/access.h"
#include "daemon/torusd/copy/copy.h"
#include "daemon/torusd/disk/roots.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/group/group.h"
#include "daemon/torusd/net/tcp.h"
#include "daemon/torusd/survey/survey.h"

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
