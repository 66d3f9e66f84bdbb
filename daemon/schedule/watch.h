/* Long computations report their progress to a function of their thread. The daemon sets none. */
#ifndef TORUSD_SCHEDULE_WATCH_H
#define TORUSD_SCHEDULE_WATCH_H

#include <stdint.h>

/* Called often. `done` is the part of the computation that is done, 0 to 1, or below 0 if that
 * is not known. */
typedef void watch_fn(void *context, double done);

/* From now on, computations of this thread call the function; NULL: they call none. */
void watch_set(watch_fn *fn, void *context);

void watch_tell(double done);

/* Counts one of `all` similar pieces of work, and reports the progress now and then. */
static inline void watch_count(uint64_t *done, uint64_t all)
{
    if ((++*done & 0xfff) == 0)
        watch_tell(all > 0 ? (double)*done / (double)all : -1);
}

#endif
