/* Sends data frames. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* engine_ops.next */
struct outgoing *reducing_next(struct engine *engine, unsigned port);
