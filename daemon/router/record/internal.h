/* Shared by the files of this folder only. */
#ifndef TORUSD_ROUTER_RECORD_INTERNAL_H
#define TORUSD_ROUTER_RECORD_INTERNAL_H

#include "daemon/router/frames/decoder.h"
#include "daemon/router/links/handshake.h"
#include "daemon/router/router.h"

#define HEARTBEAT_OLD (1 * SECONDS) /* the interval of those that do not say it */
#define HEARTBEAT_MOST_MS 5000u
#define PORT_CANDIDATES 32u /* connections that are not known to be the neighbour's */

/* What a connection has until it is: all that it has sent of one message. It is never given more room
 * than that message takes, so what follows the last one is still to be read. */
struct stranger {
    struct handshake handshake;
    struct frame_prefix prefix;
    uint32_t have;
    uint8_t bytes[FRAME_PREFIX_SIZE + FRAME_MAX_STRANGER_HEAD];
};

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

/* Connections that were refused, of which only so many are logged in a while. */
struct turned_away {
    uint64_t since; /* the first of them; ROUTER_NEVER: none lately */
    unsigned logged, others;
    char last[PORT_REASON_SIZE]; /* reason */
};

/* Losses of a link that may flap. */
struct flapping {
    uint64_t lost[ROUTER_FLAP_LOSSES]; /* when it was lost lately; the next one replaces */
    uint64_t noticed;  /* for how long losses have been noticed, added up; left out of lost[] */
    uint32_t losses;   /* lost[losses % ROUTER_FLAP_LOSSES] */
    uint64_t hold;     /* how long it has to be quiet; 0: it does not flap */
    bool held;         /* kept out, */
    uint64_t until;    /* for that long if the carrier is there; */
    uint64_t released; /* when it was used again */
};

/* What is wrong with the cable of a port. */
struct port_fault {
    struct link_fault now, stated; /* stated to others */
    uint64_t found_at;             /* last */
};

#define FAULTS_KNOWN 64u /* of other nodes: kept at the same time */

struct known_fault {
    struct fault_report report;
    uint64_t boot;   /* of its node */
    uint32_t number; /* the higher one is the newer */
    uint64_t until;  /* it is kept; 0: there is none */
};

struct faults {
    struct known_fault known[FAULTS_KNOWN];
    uint32_t number; /* of the last that was stated here */
    uint64_t state_at, restate_at;
};

/* Another node states what this one's links are, under the same rank. */
struct contest {
    uint64_t since;  /* when it was noticed first, lately; */
    unsigned times;  /* and how often since then */
    uint64_t answer; /* not before */
};

struct port {
    uint32_t neighbour; /* TORUS_NO_NODE: no link here */
    struct link *link;  /* the one that is up */
    struct link *candidates;
    bool dialling;
    bool no_carrier;  /* `reason` says so, until the carrier is back */
    uint64_t dial_at; /* ROUTER_NEVER: not waiting to dial */
    uint64_t backoff;
    uint64_t up_since;
    uint32_t connects;
    char reason[PORT_REASON_SIZE];
    struct turned_away turned_away;
    struct flapping flapping;
    struct port_fault fault;
    struct outgoing_queue control, relay;
    bool holds;     /* some link is held by this port */
    uint8_t *dirty; /* bit per rank: link state to be sent here */
    bool any_dirty;
    uint64_t restate_at; /* all link states are sent again, if a link is up */
};

struct router {
    const struct torus *torus;
    uint32_t rank;
    uint64_t boot;
    struct secrets secrets;
    struct router_io io;
    struct router_handler handler;
    struct slab_pool *pool;
    struct outgoing_pool outgoing;
    struct topology topology;
    struct port port[TORUS_MAX_PORTS];
    struct link *reading; /* whose bytes are being decoded */
    unsigned told;        /* while they are: how often the handler has been told of the topology */
    bool tells_late;      /* and that it has to be told once more when all are */
    uint64_t now;         /* when something last came in or fell due: near enough for heartbeats */
    bool stopping, any_doomed;
    uint64_t flood_at; /* ROUTER_NEVER: nothing to flood */
    struct faults faults;
    struct contest contest;
    uint64_t heartbeat, silence;
    uint64_t beat_at; /* as long as a link is up */
};

/* The files of this folder, each of which calls only those below it:
 *
 *     router.c   the object and its clock
 *     link.c     one connection
 *     probe.c    whether frames of full size pass
 *     port.c     dialling, the link that is up, who is turned away
 *     faults.c   what is wrong with cables
 *     flood.c    link states of all nodes
 *     send.c     queues
 *     view.c     what it tells of itself
 *     topology.c, fault.c, decoder.c, handshake.c, outgoing.c: know nothing of a router
 */

/* view.c: some link is up */
bool router_beats(const struct router *r);

/* send.c */
void send_release(struct router *r, unsigned port); /* links that it holds are read again */

/* flood.c */
void flood_self_changed(struct router *r);
void flood_everything(struct router *r, unsigned port);
void flood_tick(struct router *r, unsigned port, uint64_t now);
void flood_lost(struct router *r, unsigned port); /* its link is down */
void flood_flush(struct router *r);
int flood_heard(struct router *r, unsigned port, const Peer__LinkState *state, struct error *e);
void flood_read(struct router *r); /* what came in at once has been decoded */

/* faults.c */
void faults_found(struct router *r, unsigned port, const struct link_fault *fault);
void faults_of_mtu(struct router *r, unsigned port, const struct connection_stat *stat);
/* Another machine has this one's rank, and reaches the torus by other links than this one: heard by this port, whose
 * link is up. */
void faults_of_rank(struct router *r, unsigned port);
void faults_clear(struct router *r, unsigned port);
/* Who is at the other end; a port that has a link knows better. */
void faults_sighted(struct router *r, unsigned port, const struct sighting *s);
/* All that is known, to the neighbour at a port whose link has come up. */
void faults_tell_all(struct router *r, unsigned port);
void faults_tick(struct router *r, uint64_t now);
uint64_t faults_deadline(const struct router *r);
int faults_heard(struct router *r, unsigned port, const Peer__LinkFault *fault, struct error *e);

/* port.c */
/* The cable has failed, whether a link was up or not, and it took so long to notice. Call it before the link
 * is closed. */
void port_lost(struct router *r, unsigned port, uint64_t noticing);
/* Why the port is not up: logged once, not at every try. */
void port_note(struct router *r, unsigned port, const char *reason);
/* Uses a link again that has been quiet for long enough. */
void port_release(struct router *r, unsigned port, uint64_t now);
uint64_t port_release_deadline(const struct port *port);
bool port_dials(unsigned port);
void port_dial(struct router *r, unsigned port);
void port_link_up(struct link *link);
void port_link_gone(struct link *link, const char *reason);
/* Room for one more connection that is not known yet: an older one may have to go. */
void port_make_room(struct router *r, unsigned port);
/* How many were turned away without being logged, when it is time to say so. */
void port_tell_turned_away(struct router *r, unsigned port, uint64_t now);
uint64_t port_turned_away_deadline(const struct port *port);

/* probe.c */
/* Sends a frame that fills a packet. Returns 0, or -1 with *e if there is no memory. */
int probe_begin(struct link *link, struct error *e);
/* Something has come before the link is up. Returns 1 if it is up now, 0, or -1 with *e. */
int probe_heard(struct link *link, const Peer__Head *head, struct error *e);
/* When probe_check() must be called next. */
uint64_t probe_deadline(const struct link *link);
/* Returns 0, or -1 with *why: frames of full size do not pass. */
int probe_check(struct link *link, uint64_t now, struct error *why);
/* The reason if so many bytes were sent, and small frames pass. `mtu` of this side: 0 if it is not known. */
void probe_ask_mtu(uint64_t bytes, uint32_t mtu, struct error *why);

/* link.c */
/* An interval has passed through which this node has lived. Returns 0, or -1 with *why: the link has been
 * silent for too long. */
int link_beat(struct link *link, struct error *why);
void link_close(struct link *link, const struct error *why, bool tell_peer);

#endif
