/* An allgather's algorithm for blocks that are split. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_EVEN_H
#define TORUSD_SCHEDULE_ALGORITHMS_EVEN_H

#include "daemon/schedule/algorithm.h"

/* The algorithm whose trees load the channels most evenly, if blocks are long enough for its
 * segments. Two for each dimension of more than one node. Never NULL. */
const struct algorithm *even_algorithm(const struct torus *t);

#endif
