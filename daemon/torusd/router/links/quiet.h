/* Links that bring nothing for a moment, although they are up: IP routes lead around them long before they are given up
 * (silence.h). A host that forwards IP packets sends a heartbeat and looks at its links QUIET_BEAT apart. A link is quiet
 * when nothing has arrived for QUIET_BEATS of these intervals, not even an acknowledgement, which the neighbour's system
 * sends whether its daemon has a processor or not. Where the way there and back takes longer, as behind a long queue, more
 * intervals have to pass: those of twice that time. It is quiet no more after QUIET_CALM intervals with an answer, or with a new
 * connection. Exchanges do not care: TCP sends again what was lost. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/base/limits.h"

#define QUIET_BEAT (50 * MILLISECONDS)
#define QUIET_BEATS 3u
#define QUIET_CALM 20u

struct link;
struct router;

/* Whether one of these intervals is over. A late one counts as one. */
bool quiet_is_due(struct router *r, uint64_t now);

/* Looks at a link at the end of an interval. */
void quiet_beat(struct link *link);

/* States which links are quiet. None is if this node does not forward. */
void quiet_state(struct router *r);

/* When the next interval is over; ROUTER_NEVER: this node does not look. */
uint64_t quiet_deadline(const struct router *r);
