/* The algorithm of an allgather whose blocks are split. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* The algorithm whose trees load the channels most evenly, for blocks that are long enough to be
 * split: it has two segments for each dimension of more than one node. Never NULL; not in the
 * registry, never freed. */
const struct algorithm *even_algorithm(const struct torus *t);
