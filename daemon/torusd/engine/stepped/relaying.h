/* Relays frames of long messages. */
#pragma once

#include "daemon/torusd/engine/stepped/state.h"

/* Relays a frame that has arrived by the port `in` at once, unless the link of the next port is lost. */
void stepped_relay(struct stepped *s, unsigned in, const struct peer_stepped_data *data,
                   const struct extents *body, uint32_t body_length);
