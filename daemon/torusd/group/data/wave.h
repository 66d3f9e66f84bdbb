/* The source and sink of a call's waves. Each round calculates the maximum of one number over all members. The
 * number means something in the first round only; in the others it is zero, and only their arrival counts. */
#pragma once

#include "daemon/torusd/engine/blocks.h"

#define WAVE_BYTES 8u

struct wave {
    struct source source;
    struct sink sink;
    struct slab *slab; /* what this member contributes: its number in the first round, then zeros */
    uint64_t result;   /* the maximum of the first round */
};

/* Sets up waves to which this member contributes `value` in the first round. Returns 0, or -1 with *e
 * (ERROR_MEMORY). */
int wave_init(struct wave *w, uint64_t value, struct error *e);
/* Frees a wave; *w may be all zero instead. */
void wave_free(struct wave *w);
