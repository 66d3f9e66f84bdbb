/* Delivers the node's block for itself, which no link carries; in an allgather, its block for all nodes. */
#pragma once

#include "daemon/torusd/engine/stepped/state.h"

/* Delivers the part of that block that the source has, up to the end of the round; sets own.delivered when
 * the end is reached. */
void stepped_deliver_own(struct stepped *s);
