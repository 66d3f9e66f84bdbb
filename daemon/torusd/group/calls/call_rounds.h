/* The rounds of a call: which may be sent, and which all members have finished. */
#pragma once

#include "daemon/torusd/group/record/call.h"

/* Returns how many rounds of data all members have finished, as far as a large call's waves tell. */
uint64_t call_rounds_settled(const struct call *c);
/* Lets the call's engines send the rounds that they may send now. */
void call_rounds_admit(struct call *c);
/* Whether the call has data besides its waves. */
bool call_moves_data(const struct call *c);
/* Whether all waves and data have arrived, and what others need from this member has been sent. */
bool call_rounds_are_over(const struct call *c);
