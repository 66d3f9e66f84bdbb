/* What comparing has found about an entry of a manifest; a byte for each. */
#pragma once

#include <stdint.h>

enum {
    STATE_SAME,     /* nothing to do */
    STATE_METADATA, /* only mode, owner, attributes or times differ */
    STATE_NEW,      /* it is absent, another kind, or has other contents */
    STATE_MASK = 3,
    STATE_ABSENT = 4, /* with STATE_NEW: nothing has its name */
    STATE_OLD = 8     /* with STATE_NEW: an older version is there, of which pieces may be used */
};

static inline unsigned state_of(const uint8_t *state, uint64_t index)
{
    return state[index] & STATE_MASK;
}
