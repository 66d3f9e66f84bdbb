/* Calls of the program at this node, its leaving, and internal calls of the group. */
#pragma once

#include "daemon/torusd/group/data/group_call.h"
#include "daemon/torusd/group/record/session_record.h"

/* Makes a call of the program, which knows it as `name`. Returns 0, or -1 with *e. */
int session_call(struct session *s, const struct group_call *call, uint64_t name, struct error *e);
/* Makes the first call of all, which opens the whole. Returns 0, or -1 with *e (ERROR_MEMORY). */
int session_call_first(struct session *s, struct error *e);
/* Whether calls of the program have not ended. */
bool session_has_calls(const struct session *s);
/* Makes the last call of all, because the program leaves. */
void session_leave(struct session *s);
/* Sets *e: other members call something although this member has left. */
void session_error_left(const struct session *s, const struct peer_group_call *mark,
                        struct error *e);
/* Continues everything in the session as far as possible now. */
void session_advance(struct session *s);
