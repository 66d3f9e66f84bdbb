/* Finds members that call differently and wait for each other without hearing anything. A member sends a call
 * that makes no progress to its neighbours in the part, repeatedly, and they compare it with their call of the
 * same number, which may be under way or over. `now`: as router_now(). */
#pragma once

#include "daemon/torusd/group/record/call.h"

/* Sends the call to the neighbours in its part. `now`: as router_now(). */
void compare_send(struct call *c, uint64_t now);
/* Handles a neighbour's message. Returns 0, or -1 with *e if no correct neighbour sends it. */
int compare_heard(struct session *s, unsigned port, const struct peer_group_compare *message,
                  struct error *e);
