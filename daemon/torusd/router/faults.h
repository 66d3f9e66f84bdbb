/* Faults of cables: links that are down, for instance because the cable leads to a wrong port. This node states
 * the faults of its own cables, and keeps those that other nodes have stated; `status` of each node shows them. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct connection_stat;
struct router;

enum link_fault_code {
    LINK_FAULT_NONE,
    LINK_FAULT_MTU,            /* frames of full size do not pass */
    LINK_FAULT_WRONG_CABLE,    /* the cable leads to another port than the torus has there */
    LINK_FAULT_SAME_SIDE,      /* two + ports, or two - ports, are cabled to each other */
    LINK_FAULT_LOOP,           /* the cable leads to another port of the same node */
    LINK_FAULT_DUPLICATE_RANK, /* two nodes have the rank that was found at the other end */
    LINK_FAULTS
};

#define LINK_FAULT_TEXT_SIZE 240u

struct link_fault {
    enum link_fault_code code;
    uint32_t found_rank; /* the node at the other end; not for NONE and MTU */
    unsigned found_port;
    /* MTU: bytes sent, none of them acknowledged; 0: large frames do not arrive from there */
    uint32_t sent;
    uint32_t mtu; /* MTU: the MTU of the node that reports the fault; 0 = unknown */
};

/* A fault at a port of a node, as that node reports it. */
struct fault_report {
    uint32_t rank;
    unsigned port;
    struct link_fault fault;
};

/* "mtu", "wrong-cable", "same-side", "loop", "duplicate-rank"; "none". Static. */
const char *link_fault_name(enum link_fault_code code);

/* Writes a text about the fault, with what to do about it. `port` must have a neighbour. LINK_FAULT_TEXT_SIZE
 * bytes are enough. */
void link_fault_text(const struct torus *torus, const struct fault_report *report, char *text,
                     size_t size);

/* A node that claims in a beacon to be at the other end of a cable. Nothing proves the claim. */
struct sighting {
    uint32_t rank;
    unsigned port;
    uint64_t boot;
};

/* Records that frames of full size are not acknowledged at a port; `stat` has the numbers of bytes and the
 * MTU. */
void faults_of_mtu(struct router *r, unsigned port, const struct connection_stat *stat);

/* Records that another machine has the rank of this one, and reaches the torus by other links: `port`,
 * whose link is up, has received its statement. */
void faults_of_rank(struct router *r, unsigned port);

/* Clears the fault of the cable at a port. */
void faults_clear(struct router *r, unsigned port);

/* Deduces a fault from a beacon. Does nothing if the port has a link, because the handshake is more
 * certain. */
void faults_sighted(struct router *r, unsigned port, const struct sighting *s);

/* Sends all known faults to the neighbour at a port whose link has come up. */
void faults_tell_all(struct router *r, unsigned port);

/* States new faults, and repeats lasting ones, when that is due. */
void faults_tick(struct router *r, uint64_t now);

/* When faults_tick() must be called next, in nanoseconds of router_now(); or ROUTER_NEVER. */
uint64_t faults_deadline(const struct router *r);

/* Handles a fault that the neighbour at a port has sent. Returns 0, or -1 with *e: such a fault cannot
 * exist. */
int faults_heard(struct router *r, unsigned port, const struct peer_link_fault *fault,
                 struct error *e);

/* Fills *report with the `index`-th known fault, those of this node first. Returns false when there are no
 * more. */
bool router_fault(const struct router *r, unsigned index, struct fault_report *report);

/* To be called when a beacon of *s has arrived at `port`. Does nothing if the port has a link. */
void router_sighted(struct router *r, unsigned port, const struct sighting *s);
/* To be called when beacons that have arrived at `port` turn out not to come from its cable: forgets what they said of
 * the cable. */
void router_unsighted(struct router *r, unsigned port);
