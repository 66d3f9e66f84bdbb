/* The engine of a group: it shares the links among the engines of its calls, and gives each what
 * comes for it. */
#ifndef TORUSD_GROUP_SESSION_SESSION_H
#define TORUSD_GROUP_SESSION_SESSION_H

#include "daemon/group/record/session_record.h"

/* As sessions.open. */
struct engine *session_open(void *context, const struct session_setup *setup, struct error *e);
/* For groups_check(). */
int session_check(const struct session *s, struct error *e);

#endif
