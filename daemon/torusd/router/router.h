/* The links of one node: dials, makes the handshake, sends heartbeats, dials again after a loss; receives
 * frames, and sends them in the order of their urgency; and knows the state of all other links of the torus
 * (topology).
 *
 * A port has at most one link that is up. In addition it may have a bounded number of connections that have
 * not proved yet (handshake.h) that they belong to the neighbour; each of them has one small buffer and a
 * short time limit. The `+` side dials until it succeeds, with backoff; the `-` side listens. The router has
 * a single thread; router_tick() does everything that is due.
 *
 * Silence is counted in heartbeat intervals (limits.h) during which this node runs: no interval passes while
 * the daemon is stopped, or has no processor. A link is down when nothing has arrived for ROUTER_SILENCE, not
 * even an acknowledgement by the neighbour's system: the cable or the machine is broken. A neighbour whose
 * system still acknowledges, or reports a full receive window, is only slow, and gets ROUTER_STALL. If the
 * neighbour's small frames arrive, but its system acknowledges nothing for ROUTER_UNACKED, the cable loses
 * large packets. Each heartbeat carries the interval at which its sender sends them.
 *
 * On a host that forwards IP packets, a link is quiet (health.h) long before that, and IP routes avoid it.
 *
 * A link that flaps (limits.h) is neither dialled nor accepted until it has been quiet for a while.
 *
 *     no connection --router_connected()--> HELLO --handshake--> PROBING --frames of full size pass--> UP
 *           ^                                 |                     |                                  |
 *           +---- refused, not in time -------+---------------------+                                  |
 *           +---- closed, silent, nothing acknowledged, no carrier, breaks the protocol ---------------+
 */
#pragma once

#include "daemon/lib/base/limits.h"
#include "daemon/lib/base/secrets.h"
#include "daemon/lib/base/slab.h"
#include "daemon/torusd/router/faults.h"
#include "daemon/torusd/router/flood.h"
#include "daemon/torusd/router/io.h"
#include "daemon/torusd/router/link.h"
#include "daemon/torusd/router/outgoing.h"
#include "daemon/torusd/router/port.h"
#include "daemon/torusd/router/rates.h"
#include "daemon/torusd/router/topology.h"

struct router;

/* The user of the links: it receives the frames of exchanges, and provides the next ones to send. */
struct router_handler {
    void *context;
    /* A frame of an exchange has arrived on a link that is up; all arguments are borrowed. Returns 0, or -1
     * with *e: the peer broke the protocol, and the router closes the link. */
    int (*frame)(void *context, unsigned port, const struct peer_message *message,
                 const struct extents *body, uint32_t body_length, struct error *e);
    /* Returns the next data frame of this node for this port, owned by the router; or NULL. */
    struct outgoing *(*next)(void *context, unsigned port);
    /* NULL, or returns the port by which all of the body leaves that follows this message, and at which nothing
     * reads it; -1: there is none, or this is not known yet. */
    int (*passes)(void *context, unsigned port, const struct peer_message *message);
    /* NULL, or as engine_places(). The places are valid until the next call of any function. */
    void (*places)(void *context, unsigned port, const struct peer_message *message,
                   uint32_t body_length, uint32_t offset, struct places *places);
    /* A link somewhere has come up or gone down. */
    void (*topology)(void *context);
    /* A node has confirmed link states (daemon/lib/cluster/route_planner.h), or states other rates. May be NULL. */
    void (*confirmed)(void *context);
};

/* `torus` and `pool` must outlive the router; everything else is copied. `secrets` may be NULL: no cluster
 * key. Returns NULL if there is no memory. The router dials nothing before router_start(). The caller ends
 * it with router_free(). */
struct router *router_new(const struct torus *torus, uint32_t rank, const struct router_io *io,
                          const struct router_handler *handler, struct slab_pool *pool,
                          const struct secrets *secrets);

/* Sets the interval of heartbeats, and how long a link may be silent, both in nanoseconds. To be called
 * before links come up. */
void router_set_heartbeats(struct router *r, uint64_t interval, uint64_t silence);

/* Makes the node speak an older minor version of the peer protocol than PROTOCOL_MINOR. To be called before links
 * come up. */
void router_set_minor(struct router *r, uint32_t minor);

/* Starts to dial. */
void router_start(struct router *r);

/* Replaces the keys (copied). Links that are up stay up; connections whose handshake is under way are
 * closed, and start again with the new keys. */
void router_set_secrets(struct router *r, const struct secrets *secrets);

/* Closes all connections through io->close() and frees everything. */
void router_free(struct router *r);

/* When router_tick() must be called next, on the clock of io->now(); ROUTER_NEVER if it need not be called. */
uint64_t router_deadline(const struct router *r);

/* Closes connections that have been silent for too long, sends heartbeats and link states, and dials ports
 * whose backoff is over. */
void router_tick(struct router *r);

/* --- sending --- */

/* Sends a frame without a body. Does nothing if the port is down. */
void router_send(struct router *r, unsigned port, const struct peer_message *message);
/* Sends a frame without a body on every port that is up, except on `except` (-1: on all of them). */
void router_flood(struct router *r, int except, const struct peer_message *message);
/* Whether more control frames wait for this port than ROUTER_QUEUE_MOST allows: requests may then be left
 * without an answer. */
bool router_is_full(const struct router *r, unsigned port);
/* Relays a data frame through `port`; takes the frame over. */
void router_relay(struct router *r, unsigned port, struct outgoing *frame);
/* Returns the memory of the frames that router_relay() has taken for this port and that have not left, in bytes. */
size_t router_relayed_bytes(const struct router *r, unsigned port);
/* Asks handler.next() again for frames of this port. */
void router_wake(struct router *r, unsigned port);

/* --- read access: pointers are borrowed, and valid while the router exists; times are in nanoseconds --- */

/* The pool of the frames for router_relay() and handler.next(). */
struct outgoing_pool *router_outgoing(struct router *r);

const struct topology *router_topology(const struct router *r);
const struct torus *router_torus(const struct router *r);
uint32_t router_rank(const struct router *r);
uint64_t router_boot(const struct router *r);
/* The minor version of the peer protocol that this node speaks. */
uint32_t router_minor(const struct router *r);
uint64_t router_now(const struct router *r);
void router_random(struct router *r, void *buffer, size_t size);
struct slab_pool *router_pool(struct router *r);
uint64_t router_heartbeat(const struct router *r); /* interval */
uint64_t router_silence(const struct router *r);   /* limit */

/* Returns the least minor version of the peer protocol that a node speaks, of all nodes that can be reached. Code
 * that sends what a minor version has added asks this first. All nodes learn within moments that it has changed;
 * until then, a node with an older version may receive what it does not know, and ignores it. */
uint32_t router_least_minor(const struct router *r);

/* Returns the id of a key that this node accepts (KEY_ID_SIZE bytes), the preferred one first; NULL: no more. */
const uint8_t *router_key_id(const struct router *r, unsigned index);

/* Whether a link is up, so that heartbeats are sent. */
bool router_beats(const struct router *r);
