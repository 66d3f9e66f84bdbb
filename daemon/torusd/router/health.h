/* Whether a link carries frames: before it comes up (the probe), and while it is up (silence, quiet links). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/base/limits.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct link;
struct router;

/* --- the probe: the link comes up only when frames of full size have passed --- */

/* Sends a frame that fills a packet. Returns 0, or -1 with *e if there is no memory. */
int probe_begin(struct link *link, struct error *e);

/* Handles a message that arrives before the link is up. Returns 1 if the link may come up now, 0 if not yet,
 * or -1 with *e. */
int probe_heard(struct link *link, const struct peer_message *message, struct error *e);

/* When probe_check() must be called next, in nanoseconds of router_now(). */
uint64_t probe_deadline(const struct link *link);

/* Checks whether the probe has lasted too long. Returns 0, or -1 with *why: frames of full size do not
 * pass. */
int probe_check(struct link *link, uint64_t now, struct error *why);

/* --- silence: the cable is broken, the neighbour is stopped, or the cable loses large packets --- */

/* To be called after each heartbeat interval during which this node was running. Returns 0, or -1 with *why:
 * the link has been silent for too long. */
int silence_beat(struct link *link, struct error *why);

/* --- quiet links: they bring nothing for a moment, although they are up ---
 *
 * IP routes lead around them long before they are given up. A host that forwards IP packets sends a heartbeat and looks
 * at its links QUIET_BEAT apart. A link is quiet when nothing has arrived for QUIET_BEATS of these intervals, not even
 * an acknowledgement, which the neighbour's system sends whether its daemon has a processor or not. If the round trip
 * takes longer, as behind a long queue, more intervals have to pass: as many as fit into two round trips. It is quiet
 * no more after QUIET_CALM intervals with an answer, or with a new connection. Exchanges ignore this, because TCP sends
 * lost packets again. */

#define QUIET_BEAT (50 * MILLISECONDS)
#define QUIET_BEATS 3u
#define QUIET_CALM 20u

/* Whether one of these intervals is over. A late one counts as one. */
bool quiet_is_due(struct router *r, uint64_t now);

/* Looks at a link at the end of an interval. */
void quiet_beat(struct link *link);

/* States which links are quiet. None is if this node does not forward. */
void quiet_state(struct router *r);

/* When the next interval is over; ROUTER_NEVER: this node does not look. */
uint64_t quiet_deadline(const struct router *r);
