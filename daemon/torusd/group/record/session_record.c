#include "daemon/torusd/group/record/session_record.h"

void session_is_due(struct session *s)
{
    s->due = s->groups->due = true;
}

void session_fail(struct session *s, const struct error *e)
{
    (void)engine_fail(&s->base, e);
    session_is_due(s);
}

void session_is_over(struct session *s)
{
    s->over = true;
    s->base.rounds_finished = 1;
    s->base.counts.delivered_at = router_now(s->base.set.router);
    session_is_due(s);
}
