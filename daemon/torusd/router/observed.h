/* What a link has carried while data waited for it all the time, so that nothing but the link was the limit. A link is
 * slow if that is clearly less than its nominal rate. What is known about a slow link is quantised, changes only by more
 * than noise, and not often; a link that is not slow counts as nominal. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/base/limits.h"

#define OBSERVED_WINDOWS                                                                           \
    12u /* of the latest measurements that are kept: all decide about another slow rate */
#define OBSERVED_LEAST 4u /* of them decide whether a link is slow, */
#define OBSERVED_SPAN                                                                              \
    (1400 * MILLISECONDS) /* and as many as there are from the first's end to the last's */
#define OBSERVED_HOLD (6 * SECONDS) /* shortest time between two changes of `slow` */
#define OBSERVED_FORGET                                                                            \
    (10 * SECONDS) /* measurements that are so far apart do not belong together */

/* How fast a connection sends while data waits for the network, measured from one look to a later one. Begins as zeros. */
struct busy_rate {
    uint64_t bps;      /* bits per second, the last time that data always waited; 0 = unknown */
    uint64_t at;       /* when it was last looked at, in nanoseconds; 0 = never */
    uint64_t acked;    /* bytes that had been acknowledged then */
    uint64_t waited;   /* microseconds that data had waited for the network until then */
    uint32_t rtt;      /* of the round trip then, in microseconds */
    bool queued;       /* the network did not take all data then */
    uint32_t packet;   /* bytes that a link may pass as a whole, as its owner sets it; 0: 64 KiB */
    uint32_t passing;  /* the same then: bytes that wait may be in such packets */
    uint32_t measured; /* how often `bps` has been set */
};

/* What a system tells of a connection, since its beginning. */
struct busy_look {
    uint64_t acked;  /* bytes */
    uint64_t waited; /* microseconds */
    uint32_t rtt;    /* microseconds of the round trip; 0: unknown */
    bool queued;     /* data that the network has not taken waits now */
};

/* Looks at a connection: if data has waited nearly all the time since a look before, its rate is what was acknowledged
 * since then. */
void busy_rate_look(struct busy_rate *rate, uint64_t now, const struct busy_look *look);

struct observed {
    struct measured_rate {
        uint32_t kbit;          /* per second */
        uint64_t at;            /* when it was made */
    } recent[OBSERVED_WINDOWS]; /* the latest first */
    unsigned count;             /* of these */
    uint32_t slow;              /* kbit/s that the link carries; 0: it is not known to be slow */
    uint64_t changed_at;        /* when `slow` has changed; 0: never */
};

/* Whether a link that carries `kbit` carries about what it should. */
bool observed_is_well(uint32_t kbit, uint32_t nominal);

/* Notes a measurement, in kbit/s. */
void observed_note(struct observed *o, uint32_t kbit, uint64_t now);

/* Decides whether the link is slow. nominal: what it should carry, in kbit/s; 0: not known, then it is never slow. Returns
 * whether `slow` has changed. */
bool observed_decide(struct observed *o, uint32_t nominal, uint64_t now);

/* Returns what the link has carried lately, in kbit/s; 0: not known. */
uint32_t observed_rate(const struct observed *o);
