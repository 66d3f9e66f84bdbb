#include "daemon/torusd/group/late/late_calls.h"

void late_call_fail(const struct call *c, const char *whom)
{
    struct error e;

    (void)error_set(&e, ERROR_TIMEOUT, "%s has not ended within %.3f s%s%s",
                    group_operation_name(c->what.call.operation),
                    (double)c->what.call.timeout_ns / 1e9, *whom != '\0' ? ": " : "", whom);
    session_fail(c->part->session, &e);
}

void late_calls_reported(struct part *p, uint32_t number, bool asked, bool all_called,
                         const char *whom)
{
    struct group *program = p->session->group;
    struct call *c = p->calls;

    while (c != NULL && (uint32_t)c->number != number)
        c = c->next;
    if (c == NULL)
        return;
    c->watch.all_called = all_called;
    if (c->watch.overdue) {
        if (!all_called) /* a call that all have made may be about to end */
            late_call_fail(c, whom);
    } else if (c->watch.late_at != ROUTER_NEVER) {
        if (!asked || program == NULL || c->internal || call_is_for_others(c) ||
            group_call_late(program, c, whom))
            c->watch.late_at = ROUTER_NEVER; /* only one program is told */
    }
}
