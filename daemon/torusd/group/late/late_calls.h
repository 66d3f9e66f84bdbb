/* Late calls, after a census has named the nodes that have not made them. */
#pragma once

#include "daemon/torusd/group/record/call.h"

/* Fails the session because a call is late. `whom`: text that names the nodes that the call waits for; "":
 * unknown. */
void late_call_fail(const struct call *c, const char *whom);
/* Handles a census's result, the text `whom`, about the call of this number. A call past its deadline fails,
 * unless all members have made it: then it gets a little more time. Otherwise the program of the node that
 * asked is told. */
void late_calls_reported(struct part *p, uint32_t number, bool asked, bool all_called,
                         const char *whom);
