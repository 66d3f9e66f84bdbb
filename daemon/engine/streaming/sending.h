/* Sends data frames. */
#ifndef TORUSD_ENGINE_STREAMING_SENDING_H
#define TORUSD_ENGINE_STREAMING_SENDING_H

#include "daemon/engine/engine.h"

/* engine_ops.next */
struct outgoing *streaming_next(struct engine *engine, unsigned port);

/* engine_ops.wake */
void streaming_wake(struct engine *engine);

#endif
