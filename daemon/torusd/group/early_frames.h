/* Early frames: those that arrive before their call was made here, or before its engine is ready. */
#pragma once

#include "daemon/torusd/group/call.h"

/* Keeps a frame for a call, or a stage of it, that is not ready. Returns 0, or -1 with *e. */
int early_frames_keep(struct part *p, unsigned port, const struct peer_message *message,
                      const struct extents *body, uint32_t body_length, struct error *e);
/* Gives the engine of a stage the frames that arrived for it. Returns 0, or -1 with *e. */
int early_frames_give(struct part *p, uint32_t number, struct engine *engine, struct error *e);
/* Frees all early frames of a part. */
void early_frames_free(struct part *p);
/* Whether the bytes are counted correctly and within their limit, and no frame is for an engine that is there. */
bool early_frames_agree(const struct part *p);
/* Returns the early frame for a call after `one` (NULL: the first one), with its mark and its port in the part; NULL if
 * there are no more. `number` is the call's, modulo CALL_MASK + 1. */
const struct early_frame *early_frames_next(const struct part *p, const struct early_frame *one,
                                            uint32_t number, struct peer_group_call *mark,
                                            unsigned *port);
/* Returns the mark of an early frame for a call that was not made here, or NULL. */
const struct peer_group_call *early_frames_beyond(const struct part *p);
