/* The digest at the end of a reduction's frame. */
#pragma once

#include "daemon/torusd/engine/reducing/state.h"

/* Appends the digest of the frame's bytes and of its head's fields. Returns 0, or -1: the engine has
 * failed. */
int reducing_add_digest(struct reducing *s, const struct peer_streamed_data *data,
                        struct outgoing *frame);

/* Checks the digest at the end of a frame, and subtracts its size from *length. Returns 1 if the rest can
 * be used; 0 if the frame is damaged, which fails the engine; -1 with *e if the frame has no digest. */
int reducing_check_digest(struct reducing *s, unsigned port, const struct peer_streamed_data *data,
                          const struct extents *body, uint32_t *length, struct error *e);
