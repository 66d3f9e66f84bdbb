/* Long computations tell whoever watches their thread how far they are. Nobody does in the daemon. */
#ifndef TORUSD_SCHEDULE_WATCH_H
#define TORUSD_SCHEDULE_WATCH_H

#include <stdint.h>

/* Called often. `done`: the part of the computation that is done, 0 to 1; below 0: not known. */
typedef void watch_fn(void *context, double done);

/* From here on, computations of this thread call the function; NULL: none. */
void watch_set(watch_fn *fn, void *context);

void watch_tell(double done);

/* Counts one of `all` similar pieces of work, and tells of it now and then. */
static inline void watch_count(uint64_t *done, uint64_t all)
{
    if ((++*done & 0xfff) == 0)
        watch_tell(all > 0 ? (double)*done / (double)all : -1);
}

#endif
