/* Probes of slow links. Plans give a slow link little to carry, so that its rate would not be observed any more. From
 * time to time such a link is probed: for a few heartbeats, this node sends filler where it has nothing else to send. A
 * probe gives way to other frames, unless the link carries more than before, or nothing was measured for long. Frames
 * that come later wait behind the filler, so there is at most as much filler as the link carries in two heartbeats; more
 * while the link carries more than before. */
#pragma once

#include <stdint.h>

struct connection_stat;
struct link;
struct outgoing;
struct router;

/* To be called after each heartbeat interval of a link that is up: begins and ends probes of a slow link. */
void filler_check(struct link *link, const struct connection_stat *stat, uint64_t now);

/* To be called when a frame other than a heartbeat leaves by a port, or waits for it: a probe ends early. */
void filler_give_way(struct router *r, unsigned port);

/* Makes a frame of filler for a link that is being probed. Returns the frame, which the caller owns, or NULL: the link
 * is not being probed, or memory is short. */
struct outgoing *filler_next(struct link *link);
