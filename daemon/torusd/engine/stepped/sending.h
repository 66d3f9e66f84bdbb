/* Sends data frames. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* engine_ops.next */
struct outgoing *stepped_next(struct engine *engine, unsigned port);

/* engine_ops.wake */
void stepped_wake(struct engine *engine);
