/* What a link itself holds up: tells times in which more bytes waited for it than it carried from times in which it was
 * idle, waited for a short message to be acknowledged, or had a receiver without room. No I/O: for traces, and for
 * whatever measures a link in use.
 *
 * The time of a connection is divided into spans. A span that begins with LINK_LOAD_LEAST bytes or more on their way is
 *
 *     loaded   if as many of these bytes are still on their way when it ends: the link was busy throughout,
 *     drained  if they are not: the link may have been idle for a part of it,
 *
 * and says nothing if the receiver had no room in it. Bytes are acknowledged in lumps, often in the span in which they
 * drain, so both kinds count what is acknowledged in them: the rate of the link is no more than these bytes in the
 * loaded time, and no less than these bytes in the time of both kinds. A span lasts longer than a byte and its
 * acknowledgement take on an idle link, so bytes that are only far from their goal are not a load. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A receiver may wait for the second of two full packets before it acknowledges any, for 40 ms: fewer bytes than these,
 * four packets of 1500 bytes, say nothing about the link. */
#define LINK_LOAD_LEAST UINT64_C(6000)

/* What the system says about a connection. */
struct link_load_sample {
    bool known;     /* false: nothing; all others are 0 then */
    uint64_t acked; /* bytes that the peer's system has acknowledged */
    uint64_t
        backlog; /* bytes that the system has been given, and that have not been acknowledged */
    uint64_t no_room;  /* nanoseconds, so far, in which the receiver had no room for more */
    uint64_t min_trip; /* nanoseconds of a byte and its acknowledgement, at least; 0: not known */
};

/* What a span says. All 0: nothing. */
struct link_load_span {
    uint64_t began;   /* the span ends at the time of the sample */
    uint64_t loaded;  /* nanoseconds in which the link was busy throughout, */
    uint64_t drained; /* or at the beginning; one of them is 0 */
    uint64_t carried; /* the bytes that were acknowledged in that time */
    uint64_t no_room; /* nanoseconds in which the receiver had no room */
};

/* The load of a connection. Zero-initialise. */
struct link_load {
    bool begun;
    uint64_t at; /* when the span began */
    struct link_load_sample sample;
};

/* Takes what the system says at a time. Returns true, with *span, if a span has ended. Counters that fall belong to
 * another connection, with which a new span begins. */
bool link_load_take(struct link_load *l, const struct link_load_sample *sample, uint64_t now,
                    struct link_load_span *span);

/* Which rate a link has, and whether it is slower than others, from what was observed of it while it was in use
 * (link_load.h). All judgements of links by their use are made here: only times in which a link alone held bytes up
 * count, and what such times do not show is unknown. */

/* A part of a run: seconds in which the link was loaded, and in which it carried everything that waited for it, and the
 * bytes that it carried in both. */
struct link_use {
    double loaded, drained, carried;
};

struct link_rate {
    /* Whether bytes waited for the link for long enough to tell its rate. All others are 0 if not. */
    bool known;
    double least, most;     /* bytes a second: its rate is between these */
    double loaded, carried; /* of all parts */
};

/* Finds the rate of a link from the parts of a run, in the order of time. The array is written to. A link that is slow
 * for a moment, for instance because its machine did not run, is not slow: `most` is what it reached in a quarter of
 * the time in which bytes waited for it. */
void link_rate_find(struct link_use *use, size_t count, struct link_rate *rate);

/* Whether the link is that much slower than `usual`, in bytes a second, that it stands out even if what is not known is
 * in its favour. */
bool link_rate_is_slow(const struct link_rate *rate, double usual);
