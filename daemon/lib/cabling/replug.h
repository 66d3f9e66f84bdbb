/* The moves (cabling.h) that make the changes (changes.h): which interfaces the plugs go to, and in which order. */
#pragma once

#include "daemon/lib/cabling/changes.h"

struct replug {
    struct cabling_move *move;
    uint32_t moves;
};

/* Chooses an interface for each end of each link (wanted_link.end), and lists the moves. If a host is missing, its
 * links get interfaces at its neighbours. Returns 0, or -1 with *e and nothing to free. */
int replug_make(struct replug *r, struct links *l, const struct changes *c, struct error *e);
