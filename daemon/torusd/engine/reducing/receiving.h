/* Receives data frames. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* engine_ops.frame */
int reducing_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                   const struct extents *body, uint32_t body_length, struct error *e);
