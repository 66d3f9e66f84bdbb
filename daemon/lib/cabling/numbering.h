/* Chooses the ranks among all numberings of a network: the names in order of rank are the first possible. */
#pragma once

#include "daemon/lib/cabling/grid.h"

/* Makes rings of four from pairs of lines of two. Returns 0, or -1 with *e. */
int numbering_join_lines(struct grid *g, struct error *e);

/* Sets *t and host_at, by rank, with room for all nodes. Hosts are compared by their numbers. With `wanted`, the
 * dimensions get its order. Returns 0, or -1 with *e: the network has too many dimensions or ports (ERROR_REFUSED), or
 * there is no memory. */
int numbering_choose(const struct grid *g, const struct torus *wanted, struct torus *t,
                     uint32_t *host_at, struct error *e);
