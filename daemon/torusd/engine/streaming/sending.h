/* Sends data frames. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* engine_ops.next */
struct outgoing *streaming_next(struct engine *engine, unsigned port);

/* engine_ops.wake */
void streaming_wake(struct engine *engine);
