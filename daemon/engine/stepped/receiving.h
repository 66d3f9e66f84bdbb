/* Receives data frames. */
#ifndef TORUSD_ENGINE_STEPPED_RECEIVING_H
#define TORUSD_ENGINE_STEPPED_RECEIVING_H

#include "daemon/engine/engine.h"

/* engine_ops.frame */
int stepped_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                  const struct extents *body, uint32_t body_length, struct error *e);

#endif
