/* Sends data frames. */
#ifndef TORUSD_ENGINE_REDUCING_SENDING_H
#define TORUSD_ENGINE_REDUCING_SENDING_H

#include "daemon/engine/engine.h"

/* engine_ops.next */
struct outgoing *reducing_next(struct engine *engine, unsigned port);

#endif
