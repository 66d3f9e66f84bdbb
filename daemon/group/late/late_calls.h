/* A call that takes long: what a census has found about it, and what follows. */
#ifndef TORUSD_GROUP_LATE_LATE_CALLS_H
#define TORUSD_GROUP_LATE_LATE_CALLS_H

#include "daemon/group/record/call.h"

/* The session fails with that. `whom`: whom it waits for, in words; "": nobody says. */
void late_call_fail(const struct call *c, const char *whom);
/* Whom the call of this number waits for, in words. If it is overdue, it fails with that, unless all have called
 * it: then it has a little time left to end. Else the program of the node that has asked first is told. */
void late_calls_reported(struct part *p, uint32_t number, bool asked, bool all_called,
                         const char *whom);

#endif
