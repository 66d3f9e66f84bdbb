/* The state of a port as `torusctl links` shows it. */
#pragma once

#include "daemon/torusd/router/interface/io.h"
#include "daemon/torusd/router/record/port_record.h"
#include "proto/key.h"

struct router;

enum port_state {
    PORT_UNUSED,
    PORT_WAITING,
    PORT_DIALLING,
    PORT_HELLO,
    PORT_PROBING, /* the neighbour has proved itself; the probe is under way */
    PORT_HELD,
    PORT_UP
};

struct port_info {
    enum port_state state;
    uint32_t neighbour;
    char reason[PORT_REASON_SIZE]; /* why it is not up, if known */
    bool encrypted;
    char key
        [KEY_ID_TEXT_SIZE]; /* the id of the key with which the neighbour has proved itself; "" */
    uint64_t tx_bytes;      /* since the link came up */
    uint64_t rx_bytes;
    struct port_totals totals; /* since the daemon has started, of all links of the port */
    /* How far back the next three reach, at most about an hour; 0: no link has been up. */
    uint64_t hour_ns;
    uint64_t hour_tx_bytes, hour_retransmits;
    uint32_t hour_connects;
    uint64_t up_ns;       /* for how long it has been up */
    uint32_t connects;    /* how many times it has come up */
    uint64_t held_ns;     /* PORT_HELD: for how much longer it must be quiet */
    uint64_t queue_bytes; /* of frames that wait for the link */
    struct connection_stat stat;
    bool clock_known;     /* of the neighbour: */
    int64_t clock_ahead;  /* nanoseconds by which it is ahead of this node's (router_now()), */
    uint64_t clock_error; /* and how wrong that may be */
};

/* What a port's link carries; all 0 without a link. */
struct port_traffic {
    uint64_t tx_bytes, rx_bytes; /* since the link came up */
    uint64_t queue_bytes;        /* of frames that wait for the link */
    struct connection_stat stat;
};

/* Fills *info. `port` must be below torus_ports(). */
void router_port_info(struct router *r, unsigned port, struct port_info *info);
/* Fills *traffic, which takes much less time than router_port_info(). */
void router_port_traffic(struct router *r, unsigned port, struct port_traffic *traffic);
/* Returns the name of a state as `torusctl links` shows it. Static. */
const char *port_state_name(enum port_state state);
