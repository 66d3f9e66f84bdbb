/* Checks that members make the same calls, by the numbers and signatures of calls. */
#pragma once

#include "daemon/torusd/group/record/call.h"

/* Returns the number of the first call that is not complete here. */
uint64_t calls_first(const struct part *p);
/* Finds the call that a mark names, if it was made here. Returns 0 with *call; 1 with *e if the call has ended
 * here without the data that arrives now, so members call differently; or -1 with *e if there can be no such
 * call. */
int calls_find(const struct part *p, const struct peer_group_call *mark, struct call **call,
               struct error *e);
/* Whether the member behind this port of the part has made another call, and if so, sets *e to say so. */
bool signatures_differ(const struct part *p, uint32_t our_signature, uint32_t their_signature,
                       unsigned port, struct error *e);
/* Applies signatures_differ() to a call made here and the mark of a frame, and compares what they say of the data. */
bool call_differs(struct call *c, const struct peer_group_call *mark, unsigned port,
                  struct error *e);
