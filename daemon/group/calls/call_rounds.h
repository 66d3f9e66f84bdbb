/* The rounds of a call: which may leave, which all members have finished, and whether all of them are over. */
#ifndef TORUSD_GROUP_CALLS_CALL_ROUNDS_H
#define TORUSD_GROUP_CALLS_CALL_ROUNDS_H

#include "daemon/group/record/call.h"

/* Rounds of its data that all have finished, as a large call's waves tell. */
uint64_t call_rounds_settled(const struct call *c);
/* Its engines send what they may by now. */
void call_rounds_admit(struct call *c);
/* Whether there is anything but the waves. */
bool call_moves_data(const struct call *c);
/* All waves and data have come, and what others need of this member is on its way. */
bool call_rounds_are_over(const struct call *c);

#endif
