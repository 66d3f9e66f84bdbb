/* What the program at this node does with its group: it calls, and leaves. And the calls that the group makes
 * itself. */
#ifndef TORUSD_GROUP_SESSION_PROGRAM_CALLS_H
#define TORUSD_GROUP_SESSION_PROGRAM_CALLS_H

#include "daemon/group/data/group_call.h"
#include "daemon/group/record/session_record.h"

/* The program calls. Returns 0, or -1 with *e. */
int session_call(struct session *s, const struct group_call *call, uint64_t name, struct error *e);
/* The first call of all, which opens the whole. Returns 0, or -1 with *e: no memory. */
int session_call_first(struct session *s, struct error *e);
/* Whether calls of the program have not ended. */
bool session_has_calls(const struct session *s);
/* The program leaves: the last call of all. */
void session_leave(struct session *s);
/* Says in *e that a call has come although this member has left. */
void session_say_left(const struct session *s, const struct peer_group_call *mark, struct error *e);
/* Goes on with everything as far as possible. */
void session_advance(struct session *s);

#endif
