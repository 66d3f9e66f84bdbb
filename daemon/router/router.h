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
#include "daemon/router/flooding/faults.h"
#include "daemon/router/frames/outgoing.h"
#include "daemon/router/interface/handler.h"
#include "daemon/router/interface/io.h"
#include "daemon/router/interface/limits.h"
#include "daemon/router/interface/secrets.h"
#include "daemon/router/links/admission.h"
#include "daemon/router/links/carrier.h"
#include "daemon/router/links/frames_in.h"
#include "daemon/router/links/frames_out.h"
#include "daemon/router/links/link.h"
#include "daemon/router/ports/port.h"
#include "daemon/router/ports/port_info.h"
#include "daemon/router/record/send.h"
#include "daemon/router/record/view.h"
#include "daemon/router/topology/topology.h"

struct router;

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

#endif
