/* How a session begins, what is left of it while its group is restarted, and how it ends. */
#ifndef TORUSD_GROUP_SESSION_SESSION_LIFETIME_H
#define TORUSD_GROUP_SESSION_SESSION_LIFETIME_H

#include "daemon/group/record/session_record.h"

/* A new one, or one that has been open and goes on. `ops`: of its engine. Returns NULL with *e: no memory, or it
 * cannot go on without these links or nodes. */
struct session *session_new(struct groups *all, const struct session_setup *setup,
                            const struct engine_ops *ops, struct error *e);
/* Its exchange does not need it for now: it is suspended if it has been open, else freed. */
void session_release(struct session *s);
/* Its exchange is over: it need not go on. As sessions.forget. */
void session_forget(void *context, const char *id);

#endif
