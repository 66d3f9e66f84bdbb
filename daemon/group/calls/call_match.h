/* Whether members call the same: by the numbers and signatures of their calls. */
#ifndef TORUSD_GROUP_CALLS_CALL_MATCH_H
#define TORUSD_GROUP_CALLS_CALL_MATCH_H

#include "daemon/group/record/call.h"

/* The number of the first call that is not complete here. */
uint64_t calls_first(const struct part *p);
/* The call that a mark names, if it has been made here. Returns 0; 1 with *e if it has ended here
 * without what comes now: members call differently; or -1 with *e if no such call can be. */
int calls_find(const struct part *p, const struct peer_group_call *mark, struct call **call,
               struct error *e);
/* Whether the member behind this port of the part has called otherwise: says so in *e. */
bool signatures_differ(const struct part *p, uint32_t ours, uint32_t other_ones, unsigned port,
                       struct error *e);
bool call_differs(const struct call *c, const struct peer_group_call *mark, unsigned port,
                  struct error *e);

#endif
