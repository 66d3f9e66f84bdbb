/* The calls of copies that a node has heard lately: finds those that it has passed on already, and limits how many it
 * passes on, for each port and for each asker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/peer/peer_message.h"

#define COPY_CALLS_KEPT 64u  /* for each port; the next one replaces the oldest of its port */
#define COPY_CALLS_RATE 32u  /* calls that are taken from a port in a second, */
#define COPY_CALLS_BURST 64u /* and at once after a pause */
#define COPY_CALLS_ASKER 16u /* calls of one asker that are taken in a second */

struct heard_call {
    uint64_t id, at; /* at: when it was heard; 0: there is none */
    uint32_t asker, number;
    uint32_t refusals; /* that were passed on */
};

struct copy_calls {
    unsigned ports;
    struct heard_call *call; /* COPY_CALLS_KEPT for each port */
    unsigned next[TORUS_MAX_PORTS];
    double room[TORUS_MAX_PORTS]; /* calls that may be taken at once now, as of `at` */
    uint64_t at[TORUS_MAX_PORTS];
};

/* Returns 0, or -1 without memory. copy_calls_free() frees what *c holds. */
int copy_calls_init(struct copy_calls *c, unsigned ports);
void copy_calls_free(struct copy_calls *c);
/* Notes a call. Returns whether it is to be handled and passed on: it is new, and there are not too many. */
bool copy_calls_take(struct copy_calls *c, unsigned port, const struct peer_copy_call *call,
                     uint64_t now);

/* Whether a refusal is to be passed on: a call of this copy has passed here lately, and fewer refusals than there are
 * nodes since then. */
bool copy_calls_pass(struct copy_calls *c, const struct peer_copy_refusal *refusal, uint32_t nodes);
