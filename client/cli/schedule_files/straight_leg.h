/* A send between two nodes, as schedules of other programs have it, as a leg of a route. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/file/imported.h"

/* All legs of a schedule take at least ten bytes each in torusd's format (imported.h). */
#define STRAIGHT_LEGS_MOST (IMPORTED_BYTES_MOST / 10)

/* Sets *leg, except its step, to the shortest path along one dimension. If there are two, an even `choice` takes
 * direction 1. Returns 0, or -1 with *e: "node 3 is not in a straight line from node 0 on 4x4". */
int straight_leg(const struct torus *t, uint32_t from, uint32_t to, uint32_t choice,
                 struct leg *leg, struct error *e);

/* Sets *dim to the dimension in which `from` and `to` differ. Returns 0, or -1 with *e if they differ in none or in
 * several. */
int straight_dimension(const struct torus *t, uint32_t from, uint32_t to, unsigned *dim,
                       struct error *e);
