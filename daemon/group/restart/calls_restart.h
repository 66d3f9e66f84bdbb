/* What becomes of the calls of a part when links have gone down: they are suspended, members say how far each
 * is, and what is not over everywhere is made again. */
#ifndef TORUSD_GROUP_RESTART_CALLS_RESTART_H
#define TORUSD_GROUP_RESTART_CALLS_RESTART_H

#include "daemon/group/record/call.h"

/* All engines of its calls are given up. */
void calls_suspend(struct part *p);
/* What this member knows of its calls. */
void calls_say(const struct part *p, struct agreed *agreed);
/* What is not over everywhere is made again. Returns 0, or -1 with *e: it cannot go on. */
int calls_resume(struct part *p, const struct agreed *agreed, struct error *e);

#endif
