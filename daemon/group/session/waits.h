/* Why nothing leaves by a port of a group; for traces. */
#ifndef TORUSD_GROUP_SESSION_WAITS_H
#define TORUSD_GROUP_SESSION_WAITS_H

#include "daemon/engine/engine.h"

/* engine_ops.waits */
void session_waits(const struct engine *engine, enum engine_wait *port);

#endif
