/* What happens to the calls of a part when links have gone down: they are suspended, members say how far each
 * call is, and calls that are not over at all members are made again. */
#pragma once

#include "daemon/torusd/group/record/call.h"

/* Suspends all calls of the part, and frees their engines. */
void calls_suspend(struct part *p);
/* Sets *agreed to what this member knows of its calls. */
void calls_report(const struct part *p, struct agreed *agreed);
/* Makes the calls again that are not over at all members. Returns 0, or -1 with *e if that is impossible. */
int calls_resume(struct part *p, const struct agreed *agreed, struct error *e);
