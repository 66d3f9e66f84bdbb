/* What is wrong with cables, here and elsewhere. */
#ifndef TORUSD_ROUTER_FLOODING_FAULTS_H
#define TORUSD_ROUTER_FLOODING_FAULTS_H

#include <stdbool.h>

#include "daemon/router/topology/fault.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct connection_stat;
struct router;

/* Who has said, unasked and without a proof, that it is at the other end of a cable. */
struct sighting {
    uint32_t rank;
    unsigned port;
    uint64_t boot;
};

/* This is wrong with the cable of a port of this node. */
void faults_found(struct router *r, unsigned port, const struct link_fault *fault);

/* Frames of full size are not acknowledged there, as `stat` says. */
void faults_of_mtu(struct router *r, unsigned port, const struct connection_stat *stat);

/* Another machine has this one's rank, and reaches the torus by other links than this one: heard by this port, whose
 * link is up. */
void faults_of_rank(struct router *r, unsigned port);

/* Nothing is wrong with the cable of a port any more. */
void faults_clear(struct router *r, unsigned port);

/* Who is at the other end; a port that has a link knows better. */
void faults_sighted(struct router *r, unsigned port, const struct sighting *s);

/* All that is known, to the neighbour at a port whose link has come up. */
void faults_tell_all(struct router *r, unsigned port);

/* States what is new, and again what lasts, when it is time. */
void faults_tick(struct router *r, uint64_t now);

/* When faults_tick() must be called next, or ROUTER_NEVER. */
uint64_t faults_deadline(const struct router *r);

/* The neighbour at a port, whose link is up, tells of a fault. Returns 0, or -1 with *e: there can be no such
 * fault. */
int faults_heard(struct router *r, unsigned port, const struct peer_link_fault *fault,
                 struct error *e);

/* The `index`-th of what is known to be wrong with cables of any node, its own first. Returns false when there
 * are no more. */
bool router_fault(const struct router *r, unsigned index, struct fault_report *report);

/* It is at the other end of the cable of `port`. Nothing but diagnosis follows from that, while the port has no
 * link. */
void router_sighted(struct router *r, unsigned port, const struct sighting *s);

#endif
