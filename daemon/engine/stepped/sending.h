/* Sends data frames. */
#ifndef TORUSD_ENGINE_STEPPED_SENDING_H
#define TORUSD_ENGINE_STEPPED_SENDING_H

#include "daemon/engine/engine.h"

/* engine_ops.next */
struct outgoing *stepped_next(struct engine *engine, unsigned port);

/* engine_ops.wake */
void stepped_wake(struct engine *engine);

#endif
