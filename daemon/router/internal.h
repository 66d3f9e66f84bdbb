/* Shared by the files of this folder only. */
#ifndef TORUSD_ROUTER_INTERNAL_H
#define TORUSD_ROUTER_INTERNAL_H

#include "daemon/router/decoder.h"
#include "daemon/router/router.h"

#define PORT_CANDIDATES 16u /* connections that have not said hello */

/* One connection. */
struct link {
    struct link *next; /* in port.candidates */
    struct router *router;
    void *connection;
    unsigned port;
    bool dialled, up;
    bool feeding;      /* inside decoder_feed(): closing has to wait */
    bool doomed;       /* to be closed when it returns, */
    struct error doom; /* for this reason */
    char address[64];
    struct decoder decoder;
    struct slab *slab; /* bytes are read into this */
    uint32_t slab_used;
    struct outgoing_queue own; /* hello: goes out before the link is up */
    uint64_t opened, last_received, last_sent;
    uint64_t last_frame; /* that has come whole */
    uint64_t taken_at;   /* when a frame was last taken from the queues, or bytes by the peer */
    uint64_t acked;      /* connection_stat.acked then */
    uint32_t held_by;    /* ports (bits) whose queues have to drain before more is read here */
    uint64_t tx_bytes, rx_bytes;
};

struct port {
    uint32_t neighbour; /* TORUS_NO_NODE: no link here */
    struct link *link;  /* the one that is up */
    struct link *candidates;
    bool dialling;
    uint64_t dial_at; /* ROUTER_NEVER: not waiting to dial */
    uint64_t backoff;
    uint64_t up_since;
    uint32_t connects;
    char reason[160];
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
    struct router_io io;
    struct router_handler handler;
    struct slab_pool *pool;
    struct outgoing_pool outgoing;
    struct topology topology;
    struct port port[TORUS_MAX_PORTS];
    struct link *reading; /* whose bytes are being decoded */
    uint64_t now;         /* when something last came in or fell due: near enough for heartbeats */
    bool stopping, any_doomed;
    uint64_t flood_at; /* ROUTER_NEVER: nothing to flood */
};

/* The files of this folder, each of which calls only those below it:
 *
 *     router.c   the object and its clock
 *     link.c     one connection
 *     port.c     dialling, the link that is up
 *     flood.c    link states of all nodes
 *     send.c     queues
 *     view.c     what it tells of itself
 *     topology.c, decoder.c, outgoing.c: know nothing of a router
 */

/* send.c */
void send_release(struct router *r, unsigned port); /* links that it holds are read again */

/* flood.c */
void flood_self_changed(struct router *r);
void flood_everything(struct router *r, unsigned port);
void flood_tick(struct router *r, unsigned port, uint64_t now);
void flood_lost(struct router *r, unsigned port); /* its link is down */
void flood_flush(struct router *r);
int flood_heard(struct router *r, unsigned port, const Peer__LinkState *state, struct error *e);

/* port.c */
bool port_dials(unsigned port);
void port_dial(struct router *r, unsigned port);
void port_link_up(struct link *link);
void port_link_gone(struct link *link, const char *reason);

/* link.c */
void link_close(struct link *link, const struct error *why, bool tell_peer);

#endif
