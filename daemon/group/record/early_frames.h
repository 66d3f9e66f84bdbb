/* Frames that come before the call that they belong to, or before its engine is there. */
#ifndef TORUSD_GROUP_RECORD_EARLY_FRAMES_H
#define TORUSD_GROUP_RECORD_EARLY_FRAMES_H

#include "daemon/group/record/call.h"

/* Keeps a frame for a call, or a stage of it, that is not there yet. Returns 0, or -1 with *e. */
int early_frames_keep(struct part *p, unsigned port, const struct peer_message *message,
                      const struct extents *body, uint32_t body_length, struct error *e);
/* Gives the engine of a stage what has come for it. Returns 0, or -1 with *e. */
int early_frames_give(struct part *p, uint32_t number, struct engine *engine, struct error *e);
void early_frames_free(struct part *p);
/* Whether the bytes are counted right and within their limit, and none is for an engine that is there. */
bool early_frames_agree(const struct part *p);
/* The first frame that is marked otherwise than it would be by this call: its mark, and its port in the part. Or
 * NULL. */
const struct peer_group_call *early_frames_differ(const struct part *p, uint32_t number,
                                                  uint32_t signature, unsigned *port);
/* The mark of a frame for a call that has not been made here, or NULL. */
const struct peer_group_call *early_frames_beyond(const struct part *p);

#endif
