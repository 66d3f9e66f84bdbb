/* What the files of the router share. A file calls only files below it in this list:
 *
 *     router.c     the object and its clock
 *     link.c       one connection: its admission, its frames, the carrier, its end
 *     health.c     whether a link carries: the probe, silence, quiet links
 *     port.c       dialling, the link that is up, refused connections, links that flap
 *     rates.c      what links can carry, which is a part of the link states
 *     flood.c      link states, told to all nodes; faults.c: faults of cables, also told to all
 *     send.c       the queues of ports; view.c: read access
 *     filler.c     probes of slow links, which give way to other frames
 *     topology.c   which links are up. Like handshake.c, decoder.c, outgoing.c, link_clock.c and observed.c, it
 *                  does not use a router; flood_limit.c limits what surveys and copies flood */
#pragma once

#include "daemon/lib/base/last_hour.h"
#include "daemon/torusd/router/decoder.h"
#include "daemon/torusd/router/handshake.h"
#include "daemon/torusd/router/link_clock.h"
#include "daemon/torusd/router/observed.h"
#include "daemon/torusd/router/router.h"
#include "proto/key.h"

/* Counts refused connections, of which only a few are logged. */
struct turned_away {
    uint64_t since; /* when the first of them was refused; ROUTER_NEVER: none recently */
    unsigned logged, others;
    char last[PORT_REASON_SIZE]; /* reason */
};

/* Losses of a link that may flap. */
struct flapping {
    uint64_t lost[ROUTER_FLAP_LOSSES]; /* times of the latest losses, minus `noticed` then */
    uint64_t noticed;                  /* sum of the times that it took to notice losses */
    uint32_t losses;                   /* the next one replaces lost[losses % ROUTER_FLAP_LOSSES] */
    uint64_t hold;                     /* how long it must be quiet; 0: it does not flap */
    bool held;                         /* not used */
    uint64_t until;                    /* when the hold ends, if the carrier is there */
    uint64_t released;                 /* when the last hold ended */
};

/* The fault of the cable of a port. */
struct port_fault {
    struct link_fault now, stated; /* `stated`: what other nodes have been told */
    uint64_t found_at;             /* when `now` was found last */
};

/* What struct last_hour has of a port. */
enum port_hour { PORT_HOUR_SENT, PORT_HOUR_RETRANSMITS, PORT_HOUR_CONNECTS };

struct port {
    uint32_t neighbour; /* TORUS_NO_NODE: no link here */
    struct link *link;  /* the link that is up; NULL: none */
    struct link *candidates;
    bool dialling;
    bool no_carrier;  /* there is no carrier, and `reason` says so */
    uint64_t dial_at; /* ROUTER_NEVER: not waiting to dial */
    uint64_t backoff;
    uint64_t up_since;
    uint32_t connects;
    struct port_totals before; /* of links that are gone */
    struct last_hour hour;
    char reason[PORT_REASON_SIZE];
    struct turned_away turned_away;
    struct flapping flapping;
    struct port_fault fault;
    struct port_rate {
        struct nominal_rate nominal; /* in Mbit/s; 0: not known */
        uint32_t negotiated;         /* by the card, in kbit/s; 0: not known */
        struct observed observed;
        uint32_t measured;    /* connection_stat.measured at the last beat */
        bool acks_wait;       /* link_clock_acks_wait(), since the last measurement */
        bool probing;         /* filler is sent where nothing else is */
        bool insists;         /* this probe does not give way */
        unsigned probe_beats; /* of this probe */
        uint64_t probe_at;    /* when the next probe begins, if the link is slow */
        uint64_t acked;       /* connection_stat.acked at the last beat */
        uint64_t filler_left; /* bytes of filler that may be sent until the next beat */
    } rate;
    struct outgoing_queue control, relay;
    bool holds;     /* some link does not read because this port's queue is full */
    uint8_t *dirty; /* bit per rank: link state to be sent here */
    bool any_dirty;
    uint64_t restate_at; /* when all link states are sent again, if a link is up */
};

/* The state of a connection that has not proved that it belongs to the neighbour. `bytes` holds the received
 * part of one message, and nothing after that message: the bytes that follow the last message of the handshake
 * are still unread. */
struct stranger {
    struct handshake handshake;
    struct frame_prefix prefix;
    uint32_t have;
    uint8_t bytes[FRAME_PREFIX_SIZE + FRAME_MAX_STRANGER_HEAD];
};

/* The probe of a connection that has proved itself and is not up yet (health.c). */
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
    bool places; /* bytes of the last frame went into the memory of a program */
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
    struct quiet {       /* health.c */
        bool heard, is_quiet;       /* heard: since the last quick beat */
        bool counted;               /* `acked` is of the last quick beat */
        uint32_t missing, answered; /* quick beats in a row */
        uint64_t acked;             /* connection_stat.acked at the last quick beat */
    } quiet;
    struct probe probe;
    uint64_t interval; /* interval of the neighbour's heartbeats */
    struct link_clock clock;
    uint32_t held_by; /* bit p: the queue of port p must drain before this link reads again */
    uint64_t tx_bytes, rx_bytes, placed_bytes;
    uint32_t retransmits; /* connection_stat.retransmits, when it was last asked for */
};

#define FAULTS_KNOWN 64u /* most faults of other nodes that are kept at a time */

struct known_fault {
    struct fault_report report;
    uint64_t boot;   /* of its node */
    uint32_t number; /* of the statement; the newer statement has the higher one */
    uint64_t until;  /* when it is forgotten; 0: this entry is empty */
};

struct faults {
    struct known_fault known[FAULTS_KNOWN];
    uint32_t number; /* of this node's last statement */
    uint64_t state_at, restate_at;
};

/* Claims about this node with another boot number, which it overrules (flood.c). */
struct contest {
    uint64_t certain_at;  /* claims from then on are of another machine; 0: none has arrived */
    uint64_t overrule_at; /* when this node states its links again; ROUTER_NEVER: it has done so */
    uint64_t pause_until; /* not before */
};

struct router {
    const struct torus *torus;
    uint32_t rank;
    uint64_t boot;
    struct secrets secrets;
    struct router_io io;
    struct router_handler handler;
    struct slab_pool *pool;
    struct slab *in_place; /* stands for all bytes in the memory of programs */
    struct outgoing_pool outgoing;
    struct topology topology;
    struct port port[TORUS_MAX_PORTS];
    struct link *reading; /* the link whose bytes are being decoded */
    unsigned told; /* how often the handler has been told of the topology during that decoding */
    bool must_tell_again; /* the handler must be told once more after the decoding */
    uint64_t now;         /* time of the last event, which is precise enough for heartbeats */
    bool stopping, any_to_close;
    uint64_t flood_at;  /* ROUTER_NEVER: nothing to flood */
    uint64_t confirmed; /* what this node states with the next flood */
    enum topology_forwards forwards;
    uint64_t forwards_until; /* when TOPOLOGY_FORWARDS is withdrawn; else ROUTER_NEVER */
    uint32_t quiet;          /* bits of the ports that are quiet (health.h) */
    uint32_t told_minor;     /* the least minor version at the last flood */
    /* What this node states of its links with the next flood; `knows_rates`: it states something. */
    uint32_t rates[2 * TORUS_MAX_PORTS];
    bool knows_rates;
    /* When links are looked at next, if this node forwards and has any. Set when that begins: a time long over would look
     * as if this node had not run since then. */
    uint64_t quick_at;
    bool must_tell_confirmed; /* the handler must be told after the decoding */
    struct faults faults;
    struct contest contest;
    uint64_t heartbeat, silence;
    uint64_t beat_at; /* when the next heartbeat is due, if a link is up */
};

/* Continues to read from the links that the full queue of this port had stopped, if the queue has drained. */
void send_release(struct router *r, unsigned port);
