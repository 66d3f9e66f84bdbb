/* Finds out why a link that is up is silent: its cable is broken, its neighbour is stopped, or it loses large
 * packets. */
#pragma once

#include "proto/error.h"

struct link;

/* To be called after each heartbeat interval during which this node was running. Returns 0, or -1 with *why:
 * the link has been silent for too long. */
int silence_beat(struct link *link, struct error *why);
