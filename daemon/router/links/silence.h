/* A link that is up and silent: is its cable broken, its neighbour stopped, or does it lose large packets? */
#ifndef TORUSD_ROUTER_LINKS_SILENCE_H
#define TORUSD_ROUTER_LINKS_SILENCE_H

#include "proto/error.h"

struct link;

/* A heartbeat interval has passed, and this node was running during it. Returns 0, or -1 with *why: the
 * link has been silent for too long. */
int silence_beat(struct link *link, struct error *why);

#endif
