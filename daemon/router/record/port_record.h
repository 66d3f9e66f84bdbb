/* What is kept of one port: its cable, its link, and the connections that may become it. */
#ifndef TORUSD_ROUTER_RECORD_PORT_RECORD_H
#define TORUSD_ROUTER_RECORD_PORT_RECORD_H

#include "daemon/router/frames/outgoing.h"
#include "daemon/router/interface/limits.h"
#include "daemon/router/topology/fault.h"

struct link;

#define PORT_REASON_SIZE 320

/* Connections that were refused, of which only so many are logged in a while. */
struct turned_away {
    uint64_t since; /* the first of them; ROUTER_NEVER: none lately */
    unsigned logged, others;
    char last[PORT_REASON_SIZE]; /* reason */
};

/* Losses of a link that may flap. */
struct flapping {
    uint64_t lost[ROUTER_FLAP_LOSSES]; /* when it was lost lately; the next one replaces */
    uint64_t noticed;  /* for how long losses have been noticed, added up; left out of lost[] */
    uint32_t losses;   /* lost[losses % ROUTER_FLAP_LOSSES] */
    uint64_t hold;     /* how long it has to be quiet; 0: it does not flap */
    bool held;         /* kept out, */
    uint64_t until;    /* for that long if the carrier is there; */
    uint64_t released; /* when it was used again */
};

/* What is wrong with the cable of a port. */
struct port_fault {
    struct link_fault now, stated; /* stated to others */
    uint64_t found_at;             /* last */
};

struct port {
    uint32_t neighbour; /* TORUS_NO_NODE: no link here */
    struct link *link;  /* the one that is up */
    struct link *candidates;
    bool dialling;
    bool no_carrier;  /* `reason` says so, until the carrier is back */
    uint64_t dial_at; /* ROUTER_NEVER: not waiting to dial */
    uint64_t backoff;
    uint64_t up_since;
    uint32_t connects;
    char reason[PORT_REASON_SIZE];
    struct turned_away turned_away;
    struct flapping flapping;
    struct port_fault fault;
    struct outgoing_queue control, relay;
    bool holds;     /* some link is held by this port */
    uint8_t *dirty; /* bit per rank: link state to be sent here */
    bool any_dirty;
    uint64_t restate_at; /* all link states are sent again, if a link is up */
};

#endif
