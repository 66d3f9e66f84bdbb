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
 * On a host that forwards IP packets, a link is quiet (quiet.h) long before that, and IP routes avoid it.
 *
 * A link that flaps (limits.h) is neither dialled nor accepted until it has been quiet for a while.
 *
 *     no connection --router_connected()--> HELLO --handshake--> PROBING --frames of full size pass--> UP
 *           ^                                 |                     |                                  |
 *           +---- refused, not in time -------+---------------------+                                  |
 *           +---- closed, silent, nothing acknowledged, no carrier, breaks the protocol ---------------+
 * */
#pragma once

#include "daemon/lib/base/limits.h"
#include "daemon/lib/base/secrets.h"
#include "daemon/lib/base/slab.h"
#include "daemon/torusd/router/flooding/faults.h"
#include "daemon/torusd/router/flooding/flood.h"
#include "daemon/torusd/router/frames/outgoing.h"
#include "daemon/torusd/router/interface/handler.h"
#include "daemon/torusd/router/interface/io.h"
#include "daemon/torusd/router/links/admission.h"
#include "daemon/torusd/router/links/carrier.h"
#include "daemon/torusd/router/links/frames_in.h"
#include "daemon/torusd/router/links/frames_out.h"
#include "daemon/torusd/router/links/link.h"
#include "daemon/torusd/router/ports/port.h"
#include "daemon/torusd/router/ports/port_info.h"
#include "daemon/torusd/router/record/send.h"
#include "daemon/torusd/router/record/view.h"
#include "daemon/torusd/router/topology/topology.h"

struct router;

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
