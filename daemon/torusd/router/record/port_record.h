/* The record of one port: its cable, its link, and the connections that may become its link. */
#pragma once

#include "daemon/lib/base/last_hour.h"
#include "daemon/lib/base/limits.h"
#include "daemon/torusd/router/frames/outgoing.h"
#include "daemon/torusd/router/topology/fault.h"

struct link;

#define PORT_REASON_SIZE 320

/* Counts refused connections, of which only a few are logged. */
struct turned_away {
    uint64_t since; /* when the first of them was refused; ROUTER_NEVER: none recently */
    unsigned logged, others;
    char last[PORT_REASON_SIZE]; /* reason */
};

/* Losses of a link that may flap. */
struct flapping {
    uint64_t lost[ROUTER_FLAP_LOSSES]; /* times of the latest losses, minus `noticed` then */
    uint64_t noticed;                  /* sum of the times that it took to notice losses */
    uint32_t losses;                   /* the next one replaces lost[losses % ROUTER_FLAP_LOSSES] */
    uint64_t hold;                     /* how long it must be quiet; 0: it does not flap */
    bool held;                         /* not used */
    uint64_t until;                    /* when the hold ends, if the carrier is there */
    uint64_t released;                 /* when the last hold ended */
};

/* The fault of the cable of a port. */
struct port_fault {
    struct link_fault now, stated; /* `stated`: what other nodes have been told */
    uint64_t found_at;             /* when `now` was found last */
};

/* What all links of a port together have carried. */
struct port_totals {
    uint64_t tx_bytes, rx_bytes, retransmits;
};

/* What struct last_hour has of a port. */
enum port_hour { PORT_HOUR_SENT, PORT_HOUR_RETRANSMITS, PORT_HOUR_CONNECTS };

struct port {
    uint32_t neighbour; /* TORUS_NO_NODE: no link here */
    struct link *link;  /* the link that is up; NULL: none */
    struct link *candidates;
    bool dialling;
    bool no_carrier;  /* there is no carrier, and `reason` says so */
    uint64_t dial_at; /* ROUTER_NEVER: not waiting to dial */
    uint64_t backoff;
    uint64_t up_since;
    uint32_t connects;
    struct port_totals before; /* of links that are gone */
    struct last_hour hour;
    char reason[PORT_REASON_SIZE];
    struct turned_away turned_away;
    struct flapping flapping;
    struct port_fault fault;
    struct outgoing_queue control, relay;
    bool holds;     /* some link does not read because this port's queue is full */
    uint8_t *dirty; /* bit per rank: link state to be sent here */
    bool any_dirty;
    uint64_t restate_at; /* when all link states are sent again, if a link is up */
};
