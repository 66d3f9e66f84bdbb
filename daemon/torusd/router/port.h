/* One port: it dials until it succeeds, or listens, and has at most one link that is up. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/torusd/router/io.h"
#include "daemon/torusd/router/rates.h"
#include "proto/key.h"

struct link;
struct port;
struct router;

#define PORT_REASON_SIZE 320

/* Whether this side of the cable dials; else it listens. */
bool port_dials(const struct router *r, unsigned port);

/* Starts a dial. */
void port_dial(struct router *r, unsigned port);

/* Records why the port is not up. The log gets each reason once, not at every attempt. */
void port_note(struct router *r, unsigned port, const char *reason);

/* Makes a candidate the link of its port, which must have none. */
void port_link_up(struct link *link);

/* Removes a link or a candidate from its port. If the port had dialled that connection, it dials again later.
 * The caller frees the link. */
void port_link_gone(struct link *link, const char *reason);

/* To be called when io->dial() has failed. `reason` is copied; the port dials again later. */
void router_dial_failed(struct router *r, unsigned port, const char *reason);

/* Dials `port` at once. To be called when the cause of its last failure may have gone, or a dial under way
 * can no longer succeed. */
void router_dial_again(struct router *r, unsigned port);

/* To be called when a `-` port cannot listen; `fault` says why (copied). NULL: it listens. */
void router_listening(struct router *r, unsigned port, const char *fault);

/* --- links that flap (limits.h): they are not used until they have been quiet for a while --- */

/* Counts a loss: the cable of a port has failed, whether its link was up or not, and this node has noticed it
 * `noticing` nanoseconds later. To be called before the link is closed. */
void flapping_lost(struct router *r, unsigned port, uint64_t noticing);

/* Ends the hold of a link that has been quiet for long enough. */
void flapping_release(struct router *r, unsigned port, uint64_t now);

/* When flapping_release() must be called next, in nanoseconds of router_now(); or ROUTER_NEVER. */
uint64_t flapping_deadline(const struct port *port);

/* --- refused connections: only a few of a flood are logged --- */

/* Logs how many connections were refused without a line of their own, when that is due. */
void turned_away_tell(struct router *r, unsigned port, uint64_t now);

/* When turned_away_tell() must be called next, in nanoseconds of router_now(); or ROUTER_NEVER. */
uint64_t turned_away_deadline(const struct port *port);

/* Remembers what the port has counted, if the time for that has come. To be called often while its link is up. */
void port_hour_note(struct router *r, unsigned port);

/* --- the state of a port, as `torusctl links` shows it --- */

/* What all links of a port together have carried. */
struct port_totals {
    uint64_t tx_bytes, rx_bytes, retransmits;
    uint64_t placed_bytes; /* of rx_bytes: those that came straight into the memory of programs */
};

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
    struct port_totals totals; /* since the daemon started, of all links of the port */
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
    struct port_rates rates;
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
