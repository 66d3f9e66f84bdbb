/* Members that call differently and hear nothing from each other: each waits for the other. A call
 * that stands still is told to the neighbours in its part, again and again, and they compare it with
 * theirs of the same number, be it under way or over. */
#ifndef TORUSD_GROUP_LATE_COMPARE_H
#define TORUSD_GROUP_LATE_COMPARE_H

#include "daemon/group/record/call.h"

void compare_send(struct call *c, uint64_t now);
/* A neighbour's message. Returns 0, or -1 with *e: no neighbour would send it. */
int compare_heard(struct session *s, unsigned port, const struct peer_group_compare *message,
                  struct error *e);

#endif
