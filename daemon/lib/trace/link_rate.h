/* Which rate a link has, and whether it is slower than others, from what was observed of it while it was in use
 * (link_load.h). Whoever judges links by their use asks here: only times in which a link alone held bytes up
 * count, and what such times do not tell is not known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* Finds the rate of a link from the parts of a run, in the order of time. The array is written to. A link that is slow for
 * a moment, for instance because its machine did not run, is not slow: `most` is what it reached in a quarter of the time in
 * which bytes waited for it. */
void link_rate_find(struct link_use *use, size_t count, struct link_rate *rate);

/* Whether the link is so much slower than `usual`, in bytes a second, that it stands out, whatever is not known. */
bool link_rate_is_slow(const struct link_rate *rate, double usual);
