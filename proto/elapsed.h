/* Times between two moments. */
#pragma once

#include <stdint.h>

/* Returns how much later `to` is than `from`, on one clock and in its unit; 0 if `to` is earlier. A moment that seems
 * past may be later than "now": what was begun in a tick has a time of its own, which is later than the time at which
 * the tick began. A plain difference would then be about 584 years. */
static inline uint64_t elapsed(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}
