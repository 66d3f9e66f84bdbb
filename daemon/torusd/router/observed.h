/* What a link has carried while data waited for it all the time, so that nothing but the link was the limit. A link is
 * slow if that is clearly less than its nominal rate. What is known about a slow link is quantised, changes only by more
 * than noise, and not often; a link that is not slow counts as nominal. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/base/limits.h"

#define OBSERVED_WINDOWS 4u         /* of the latest measurements that are looked at */
#define OBSERVED_HOLD (6 * SECONDS) /* shortest time between two changes of `slow` */
#define OBSERVED_FORGET                                                                            \
    (10 * SECONDS) /* measurements that are so far apart do not belong together */

struct observed {
    uint32_t recent[OBSERVED_WINDOWS]; /* kbit/s, the latest first */
    unsigned count;                    /* of these */
    uint64_t at;                       /* when the latest was made */
    uint32_t slow;       /* kbit/s that the link carries; 0: it is not known to be slow */
    uint64_t changed_at; /* when `slow` has changed; 0: never */
};

/* Notes a measurement, in kbit/s. */
void observed_note(struct observed *o, uint32_t kbit, uint64_t now);

/* Decides whether the link is slow. nominal: what it should carry, in kbit/s; 0: not known, then it is never slow. Returns
 * whether `slow` has changed. */
bool observed_decide(struct observed *o, uint32_t nominal, uint64_t now);

/* Returns what the link has carried lately, in kbit/s; 0: not known. */
uint32_t observed_rate(const struct observed *o);
