/* The engine of a group. It shares the links among the engines of the group's calls, and gives each engine the
 * frames for it. */
#pragma once

#include "daemon/torusd/group/operations/operations.h"
#include "daemon/torusd/group/state.h"

/* Opens a session; see sessions.open. */
struct engine *session_open(void *context, const struct session_setup *setup, struct error *e);
/* Frees the session that is kept under this id, because its exchange is over; see sessions.forget. */
void session_forget(void *context, const char *id);
/* Checks the session, for groups_check(). Returns 0, or -1 with *e. */
int session_check(const struct session *s, struct error *e);

/* Calls of the program at this node, its leaving, and internal calls of the group. */

/* Makes a call of the program, which knows it as `name`. Returns 0, or -1 with *e. */
int session_call(struct session *s, const struct group_call *call, uint64_t name, struct error *e);
/* Whether calls of the program have not ended. */
bool session_has_calls(const struct session *s);
/* Makes the last call of all, because the program leaves. */
void session_leave(struct session *s);
