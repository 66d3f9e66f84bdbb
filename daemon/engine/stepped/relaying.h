/* Frames of long messages, which relays pass on. */
#ifndef TORUSD_ENGINE_STEPPED_RELAYING_H
#define TORUSD_ENGINE_STEPPED_RELAYING_H

#include "daemon/engine/stepped/state.h"

/* Sends a frame that has come in by the port `in` straight on, unless the link there is lost. */
void stepped_relay(struct stepped *s, unsigned in, const struct peer_stepped_data *data,
                   const struct extents *body, uint32_t body_length);

#endif
