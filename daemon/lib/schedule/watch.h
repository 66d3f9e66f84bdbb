/* Progress of long computations. They report it to a function of their thread, if there is one; the
 * daemon sets none. */
#pragma once

#include <stdint.h>

/* Called often. `done` is the part of the computation that is done, from 0 to 1, or negative if
 * that is not known. */
typedef void watch_fn(void *context, double done);

/* Sets the function for this thread; NULL: none. */
void watch_set(watch_fn *fn, void *context);

/* Calls the function, if there is one. */
void watch_tell(double done);

/* Counts one of `all` similar pieces of work in *done, and reports progress now and then; `all` is
 * 0 if their number is not known. */
static inline void watch_count(uint64_t *done, uint64_t all)
{
    if ((++*done & 0xfff) == 0)
        watch_tell(all > 0 ? (double)*done / (double)all : -1);
}
