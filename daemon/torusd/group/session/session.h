/* The engine of a group. It shares the links among the engines of the group's calls, and gives each engine the
 * frames for it. */
#pragma once

#include "daemon/torusd/group/record/session_record.h"

/* Opens a session; see sessions.open. */
struct engine *session_open(void *context, const struct session_setup *setup, struct error *e);
/* Checks the session, for groups_check(). Returns 0, or -1 with *e. */
int session_check(const struct session *s, struct error *e);
