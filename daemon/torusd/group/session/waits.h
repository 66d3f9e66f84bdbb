/* Why nothing leaves by a port of a group; for traces. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* engine_ops.waits */
void session_waits(const struct engine *engine, enum engine_wait *port);
