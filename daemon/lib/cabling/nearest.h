/* The network that the cables make after the fewest moves. */
#pragma once

#include "daemon/lib/cabling/network.h"

struct nearest {
    bool found;
    struct torus torus;
    uint32_t *
        host_at; /* by rank, with room for one host more than there are; a number that is not a host stands for a
                        * host that is missing */
    uint32_t moves;
};

/* Looks for the wanted network if dimensions are wanted, otherwise for any of as many nodes as there are
 * hosts, or one more or fewer. If several networks need the same number of moves, takes the preferred one (nearest.c).
 * Returns 0, or -1 with *e and nothing to free. */
int nearest_find(struct nearest *n, const struct wiring *w, struct error *e);
void nearest_free(struct nearest *n);
