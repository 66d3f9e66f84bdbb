/* The state of discovery, for the files of this folder. */
#pragma once

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/times.h"

/* A host that this host hears on one interface. */
struct neighbour {
    struct heard from;
    struct discovery_address address;
    uint64_t until;       /* it is dropped at this time, unless a hello comes */
    uint64_t digest;      /* from its last hello */
    uint64_t summary_due; /* no summary is sent to it before */
};

struct own_interface {
    struct interface_state state;
    unsigned neighbours;
    struct neighbour neighbour[DISCOVERY_HEARD_MOST];
    uint64_t hello_due;
    /* Hellos arrive whose senders do not answer: since when, and until when without another one. */
    uint64_t strange_since, strange_until;
    bool unanswered;            /* for longer than answers take */
    uint64_t tokens, tokens_at; /* see DISCOVERY_RATE */
};

struct discovery {
    struct discovery_io io;
    struct identity identity;
    struct secrets secrets;
    struct database database;
    struct report own; /* without interfaces: the fixed part of this host's report */
    unsigned interfaces;
    struct own_interface interface[DISCOVERY_INTERFACES_MOST];
    uint64_t report_due; /* of this host */
    uint64_t expiry_due; /* of the reports of others */
    uint64_t changed_at; /* when an interface or neighbour of this host changed last */
    struct setups setups;
    uint64_t setups_due;
};

static inline uint64_t discovery_now(const struct discovery *d)
{
    return d->io.now(d->io.context);
}
