/* What is kept of one connection. */
#ifndef TORUSD_ROUTER_RECORD_LINK_RECORD_H
#define TORUSD_ROUTER_RECORD_LINK_RECORD_H

#include "daemon/router/frames/decoder.h"
#include "daemon/router/frames/outgoing.h"
#include "daemon/router/interface/limits.h"
#include "proto/key.h"

struct router;
struct stranger; /* links/stranger.h */

/* What is known of a connection that has been proved, and is not up: see probe.c. */
struct probe {
    uint32_t length;          /* bytes of ours */
    bool heard, answered;     /* the other's has come; ours has been answered */
    bool told;                /* that nothing is acknowledged */
    uint64_t since;           /* when something last was, or had come: */
    uint64_t acked, received; /* connection_stat.acked and rx_bytes then */
};

/* One connection. */
struct link {
    struct link *next; /* in port.candidates */
    struct router *router;
    void *connection;
    unsigned port;
    bool dialled, up;  /* proved, if it has no stranger; then, if frames of full size pass: up */
    bool feeding;      /* inside decoder_feed(): closing has to wait */
    bool doomed;       /* to be closed when it returns, */
    struct error doom; /* for this reason */
    bool encrypted;
    bool has_key;              /* has been proved, */
    uint8_t key[KEY_ID_SIZE];  /* with this one */
    char address[80];          /* with the zone, if it is link-local */
    struct stranger *stranger; /* NULL if it is proved */
    struct decoder decoder;    /* if it is, as the next */
    struct slab *slab;         /* bytes are read into this */
    uint32_t slab_used;
    struct outgoing_queue own; /* of the handshake: goes out before the link is up */
    uint64_t opened;
    uint64_t last_frame; /* that has come whole */
    uint64_t taken_at;   /* when a frame was last taken from the queues, or bytes by the peer */
    uint64_t taken;      /* connection_stat.acked then */
    bool heard;          /* since the last beat */
    uint32_t unheard;    /* beats since it was */
    uint32_t unanswered; /* beats without that, and without an acknowledgement that was due */
    uint32_t blocked;    /* beats without an acknowledgement that was due, whether heard or not */
    uint64_t acked;      /* connection_stat.acked at the last beat */
    struct probe probe;
    uint64_t interval; /* of the neighbour's heartbeats */
    uint32_t held_by;  /* ports (bits) whose queues have to drain before more is read here */
    uint64_t tx_bytes, rx_bytes;
};

#endif
