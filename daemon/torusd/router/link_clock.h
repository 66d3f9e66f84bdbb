/* By how much a neighbour's clock is ahead, from the times in heartbeats: each says when it was sent, and when the last
 * one of the other side was sent and how long ago that arrived. The round-trip time is known, but not how it is divided
 * between the two directions. So the error is half of it, plus the drift of the clocks in the meantime. The heartbeat
 * with the least error of the last minute counts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer_heartbeat;

/* Times are nanoseconds of this node's clock (router_now()), except peer_at. */
struct link_clock {
    uint64_t peer_at,
        heard_at; /* of the last heartbeat that arrived: when it was sent, and arrived; 0: none */
    bool known;
    int64_t ahead;     /* the neighbour's clock minus this node's, nanoseconds */
    uint64_t error;    /* `ahead` is wrong by at most this much */
    uint64_t found_at; /* when it was found */
    uint64_t in,
        out; /* how long the last heartbeats of each side were on their way; 0: not known */
};

/* Adds the times to a heartbeat that is sent now. */
void link_clock_fill(const struct link_clock *c, struct peer_heartbeat *beat, uint64_t now);
/* Takes the times of a heartbeat, which may contain anything. */
void link_clock_take(struct link_clock *c, const struct peer_heartbeat *beat, uint64_t now);
/* Whether what the neighbour sends is clearly longer on its way than what this node sends, as the last heartbeats say, or
 * one that is overdue. Then acknowledgements wait behind the neighbour's own data, and so does what they let TCP send: a
 * low rate of this direction says nothing about the link. interval: of the neighbour's heartbeats. */
bool link_clock_acks_wait(const struct link_clock *c, uint64_t interval, uint64_t now);

/* Sets by how much the neighbour's clock is ahead now, and how wrong that may be. Returns false if it is not known. */
bool link_clock_ahead(const struct link_clock *c, uint64_t now, int64_t *ahead, uint64_t *error);
