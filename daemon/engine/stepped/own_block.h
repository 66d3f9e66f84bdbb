/* What the node has for itself, which no link carries; in an allgather its block for all. */
#ifndef TORUSD_ENGINE_STEPPED_OWN_BLOCK_H
#define TORUSD_ENGINE_STEPPED_OWN_BLOCK_H

#include "daemon/engine/stepped/state.h"

/* Delivers what the source has of it, up to the end of the round; sets own.delivered at the end. */
void stepped_deliver_own(struct stepped *s);

#endif
