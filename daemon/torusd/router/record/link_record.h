/* The record of one connection. */
#pragma once

#include "daemon/lib/base/limits.h"
#include "daemon/torusd/router/frames/decoder.h"
#include "daemon/torusd/router/frames/outgoing.h"
#include "daemon/torusd/router/record/link_clock.h"
#include "proto/key.h"

struct router;
struct stranger; /* links/stranger.h */

/* The probe of a connection that has proved itself and is not up yet (probe.c). */
struct probe {
    uint32_t length;          /* of this side's probe, in bytes */
    bool heard, answered;     /* the peer's probe has arrived; ours */
    bool told;                /* the fault that nothing is acknowledged has been reported */
    uint64_t since;           /* when bytes were last acknowledged, or arrived: */
    uint64_t acked, received; /* connection_stat.acked and rx_bytes then */
};

/* One connection. */
struct link {
    struct link *next; /* in port.candidates */
    struct router *router;
    void *connection;
    unsigned port;
    bool dialled, up;          /* up: the connection has proved itself, and the probe has passed */
    bool decoding;             /* inside decoder_feed(): the link must not be freed */
    bool to_close;             /* close the link when that returns, */
    struct error close_reason; /* for this reason */
    bool encrypted;
    uint32_t minor;            /* minor version of the protocol that the peer speaks */
    bool has_key;              /* the peer has proved that it has a key, */
    uint8_t key[KEY_ID_SIZE];  /* with this id */
    char address[80];          /* with the zone, if it is link-local */
    struct stranger *stranger; /* NULL if it is proved */
    struct decoder decoder;    /* this and the next fields are used when the link is proved */
    struct slab *slab;         /* bytes are read into this */
    uint32_t slab_used;
    struct outgoing_queue
        handshake_frames; /* frames of the handshake and the probe, which leave before the link
                           * is up */
    uint64_t opened;
    uint64_t last_frame; /* when the last whole frame arrived */
    uint64_t taken_at;   /* when this side last took a frame from its queues, or the peer's system
                          * acknowledged bytes */
    uint64_t taken;      /* connection_stat.acked then */
    bool heard;          /* the neighbour was heard since the last beat */
    uint32_t unheard;    /* beats since the neighbour was heard */
    uint32_t unanswered; /* beats without hearing it, and without an acknowledgement that was due */
    uint32_t blocked;    /* beats without an acknowledgement that was due, whether heard or not */
    uint64_t acked;      /* connection_stat.acked at the last beat */
    struct quiet {       /* quiet.c */
        bool heard, is_quiet;       /* heard: since the last quick beat */
        bool counted;               /* `acked` is of the last quick beat */
        uint32_t missing, answered; /* quick beats in a row */
        uint64_t acked;             /* connection_stat.acked at the last quick beat */
    } quiet;
    struct probe probe;
    uint64_t interval; /* interval of the neighbour's heartbeats */
    struct link_clock clock;
    uint32_t held_by; /* bit p: the queue of port p must drain before this link reads again */
    uint64_t tx_bytes, rx_bytes;
    uint32_t retransmits; /* connection_stat.retransmits, when it was last asked for */
};
