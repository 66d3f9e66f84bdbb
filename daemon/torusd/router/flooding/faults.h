/* Faults of cables: this node states the faults of its own cables, and keeps those that other nodes have
 * stated. */
#pragma once

#include <stdbool.h>

#include "daemon/torusd/router/topology/fault.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct connection_stat;
struct router;

/* A node that claims in a beacon to be at the other end of a cable. Nothing proves the claim. */
struct sighting {
    uint32_t rank;
    unsigned port;
    uint64_t boot;
};

/* Records a fault of the cable at a port of this node, to be stated to all nodes. */
void faults_found(struct router *r, unsigned port, const struct link_fault *fault);

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
