/* The links of one node: dialling, hello, heartbeats, redialling; frames in, frames out in the
 * order of their urgency; and what is known of all the other links (topology).
 *
 * A port has at most one link that is up, and a bounded number of connections that have not proved
 * (handshake.h) that they are the neighbour's, each with one small buffer and little time.
 * The `+` side dials until it succeeds, with backoff; the `-` side listens. Single-threaded; time
 * passes through router_tick().
 *
 * Silence is counted in intervals of heartbeats (limits.h), as this node lives through them: while it
 * is stopped, or has no processor, none pass. A link is down when nothing has come for ROUTER_SILENCE,
 * not even the other system's acknowledgement of what was sent: then the cable is broken or the machine
 * is. A neighbour whose system still answers, or has said that it has no room for more, is only slow,
 * and is given ROUTER_STALL. If its small frames come and nothing of what is sent to it is acknowledged for
 * ROUTER_UNACKED, the cable loses large packets. A heartbeat says how often they come.
 *
 * A link that flaps (limits.h) is neither dialled nor answered until it has been quiet for a while.
 *
 *     no connection --router_connected()--> HELLO --handshake--> PROBING --frames of full size pass--> UP
 *           ^                                 |                     |                                  |
 *           +---- refused, not in time -------+---------------------+                                  |
 *           +---- closed, silent, nothing acknowledged, no carrier, breaks the protocol ---------------+
 */
#ifndef TORUSD_ROUTER_ROUTER_H
#define TORUSD_ROUTER_ROUTER_H

#include "daemon/base/slab.h"
#include "daemon/router/frames/outgoing.h"
#include "daemon/router/io.h"
#include "daemon/router/limits.h"
#include "daemon/router/links/handshake.h"
#include "daemon/router/topology/fault.h"
#include "daemon/router/topology/topology.h"

struct router;
struct link;

/* The user of the links: receives the frames of exchanges, and is asked for the next to send. */
struct router_handler {
    void *context;
    /* A frame of an exchange has come in on an up link; all is borrowed. Returns 0, or -1 with *e:
     * the peer broke the protocol and its link is closed. */
    int (*frame)(void *context, unsigned port, const Peer__Head *head, const struct extents *body,
                 uint32_t body_length, struct error *e);
    /* The next data frame of our own for this port, or NULL. */
    struct outgoing *(*next)(void *context, unsigned port);
    /* A link somewhere has come up or gone down. */
    void (*topology)(void *context);
};

/* `torus`, `pool` must outlive the router; the rest is copied. `secrets` may be NULL: no cluster key.
 * Returns NULL if there is no memory. Nothing is dialled before router_start(). */
struct router *router_new(const struct torus *torus, uint32_t rank, const struct router_io *io,
                          const struct router_handler *handler, struct slab_pool *pool,
                          const struct secrets *secrets);
/* Heartbeats leave in this interval, and a link may be silent for that long; for links that come up
 * later. */
void router_set_heartbeats(struct router *r, uint64_t interval, uint64_t silence);
/* Begins to dial. */
void router_start(struct router *r);

/* Other keys from now on (copied). Links that are up stay; connections in the middle of a handshake are
 * closed, to begin anew. */
void router_set_secrets(struct router *r, const struct secrets *secrets);

/* Closes all connections through io->close() and frees everything. */
void router_free(struct router *r);

/* When router_tick() must be called next (as io->now()), or ROUTER_NEVER. */
uint64_t router_deadline(const struct router *r);
/* Closes what has been silent for too long, sends heartbeats and link states, dials again. */
void router_tick(struct router *r);

/* --- called by the I/O below --- */

/* A connection on `port` has been made by us (dialled) or by a peer. Returns its link, to which
 * all that happens to the connection is told until io->close(); NULL if it is not wanted: the
 * caller closes it. `address` is copied. */
struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address);
/* io->dial() has not led to a connection. `reason` is copied; it is dialled again later. */
void router_dial_failed(struct router *r, unsigned port, const char *reason);
/* What made the last dial of `port` fail, or what a dial under way relies on, has changed: it is dialled
 * at once. */
void router_dial_again(struct router *r, unsigned port);
/* The `-` side of `port` cannot listen for its neighbour, as `fault` says (copied). NULL: it listens. */
void router_listening(struct router *r, unsigned port, const char *fault);
/* The cable of `port` cannot carry anything, as `fault` says ("no carrier on eth1"; copied): its link is
 * given up. NULL: it can again, and is dialled at once. It is taken for good before anything is told. */
void router_carrier(struct router *r, unsigned port, const char *fault);

/* Who has said, unasked and without a proof, that it is at the other end of a cable. */
struct sighting {
    uint32_t rank;
    unsigned port;
    uint64_t boot;
};
/* It is at the other end of the cable of `port`. Nothing but diagnosis follows from that, while the port has no
 * link. */
void router_sighted(struct router *r, unsigned port, const struct sighting *s);

/* Where the next bytes of the connection are to be put: once it is up, there is room for LINK_ROOM_LEAST
 * bytes at least. NULL if there is no memory. */
#define LINK_ROOM_LEAST (16u * 1024u)
uint8_t *link_room(struct link *link, size_t *size);
/* `length` bytes have been put there. The link may be closed (io->close) before this returns. */
void link_received(struct link *link, size_t length);
/* Whether nothing more is to be read from the connection for now, because what was read last has
 * filled the queue of a link whose other end does not take it. io->wake() is called when that has
 * changed. What is read nevertheless is taken. */
bool link_held(const struct link *link);
/* The next frame to write; the caller frees it after the write. NULL: nothing now. */
struct outgoing *link_next(struct link *link);
/* The connection is gone (end of file, reset, write error). The link is freed. */
void link_closed(struct link *link, const char *reason);

/* Where frames come from that go to router_relay() and handler.next(). */
struct outgoing_pool *router_outgoing(struct router *r);

/* --- called by the exchange above --- */

/* Sends a frame without a body. Nothing happens if the port is down. */
void router_send(struct router *r, unsigned port, const Peer__Head *head);
/* The same on every up port but `except` (-1: on all). */
void router_flood(struct router *r, int except, const Peer__Head *head);
/* More waits for this port than may: whoever asks for something may go without an answer. */
bool router_is_full(const struct router *r, unsigned port);
/* Passes on a data frame on its way through; takes it over. */
void router_relay(struct router *r, unsigned port, struct outgoing *frame);
/* handler.next() has something for this port again. */
void router_wake(struct router *r, unsigned port);

/* All borrowed, valid as long as the router. */
const struct topology *router_topology(const struct router *r);
const struct torus *router_torus(const struct router *r);
uint32_t router_rank(const struct router *r);
uint64_t router_boot(const struct router *r);
uint64_t router_now(const struct router *r);
void router_random(struct router *r, void *buffer, size_t size);
struct slab_pool *router_pool(struct router *r);
uint64_t router_heartbeat(const struct router *r); /* interval */
uint64_t router_silence(const struct router *r);   /* limit */

#define PORT_REASON_SIZE 320

enum port_state {
    PORT_UNUSED,
    PORT_WAITING,
    PORT_DIALLING,
    PORT_HELLO,
    PORT_PROBING, /* it is the neighbour; whether frames of full size pass is being found out */
    PORT_HELD,
    PORT_UP
};

struct port_info {
    enum port_state state;
    uint32_t neighbour;
    char reason[PORT_REASON_SIZE]; /* why it is not up, if known */
    bool encrypted;
    char key
        [KEY_ID_TEXT_SIZE]; /* the id of the key with which the neighbour has proved itself; "" */
    uint64_t tx_bytes;      /* since the link came up */
    uint64_t rx_bytes;
    uint64_t up_ns;    /* for how long it has been up */
    uint32_t connects; /* how many times it has come up */
    uint64_t held_ns;  /* PORT_HELD: how long it has to be quiet yet */
    struct connection_stat stat;
};

/* The `index`-th of what is known to be wrong with cables of any node, its own first. Returns false when there
 * are no more. */
bool router_fault(const struct router *r, unsigned index, struct fault_report *report);

/* `port` must be below torus_ports(). */
void router_port_info(struct router *r, unsigned port, struct port_info *info);
const char *port_state_name(enum port_state state);

#endif
