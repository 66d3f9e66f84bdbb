/* How a session is made, what is kept of it while its group is restarted, and how it ends. */
#pragma once

#include "daemon/torusd/group/record/session_record.h"

/* Makes a new session, or continues one that was open. `ops`: of its engine. Returns NULL with *e if there is
 * no memory, or if the session cannot continue without these links or nodes. */
struct session *session_new(struct groups *groups, const struct session_setup *setup,
                            const struct engine_ops *ops, struct error *e);
/* Suspends a session that was open; frees one that was not. Called when its exchange's attempt ends. */
void session_release(struct session *s);
/* Frees the session that is kept under this id, because its exchange is over; see sessions.forget. */
void session_forget(void *context, const char *id);
