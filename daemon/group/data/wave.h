/* The source and sink of a call's waves: a maximum over all members of one number a round. The number
 * of the first round says something; all others are zero, and only that they have come does. */
#ifndef TORUSD_GROUP_DATA_WAVE_H
#define TORUSD_GROUP_DATA_WAVE_H

#include "daemon/engine/blocks.h"

#define WAVE_BYTES 8u

struct wave {
    struct source source;
    struct sink sink;
    struct slab *slab; /* what this node contributes to the first round, then zeros */
    uint64_t result;   /* of the first */
};

/* This member contributes `value` to the first round. Returns 0, or -1 with *e: no memory. */
int wave_init(struct wave *w, uint64_t value, struct error *e);
/* Also of one that has not been initialized, but is zero. */
void wave_free(struct wave *w);

#endif
