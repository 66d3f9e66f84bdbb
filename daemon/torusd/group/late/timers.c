#include "daemon/torusd/group/late/timers.h"

#include "daemon/torusd/group/late/census.h"
#include "daemon/torusd/group/late/compare.h"
#include "daemon/torusd/group/late/late_calls.h"

#define CENSUS_TIME (2 * SECONDS)

/* Handles a call whose deadline has passed: asks which members have not made it, and fails it if nobody answers. */
static void call_overdue(struct call *c, uint64_t now)
{
    if (!c->watch.overdue) {
        c->watch.overdue = true;
        c->watch.deadline = now + CENSUS_TIME;
        census_ask(c->part->session, c);
        return;
    }
    late_call_fail(c, c->watch.all_called ? CENSUS_ALL_CALLED : "");
}

/* Handles a call that is late: asks repeatedly which members it waits for, until some node knows. */
static void call_late(struct call *c, uint64_t now)
{
    c->watch.late_at = now + c->what.call.late_ns;
    census_ask(c->part->session, c);
}

uint64_t timers_deadline(const struct session *s)
{
    uint64_t at = s->census.running ? s->census.deadline : ROUTER_NEVER;

    if (s->base.failure.code != ERROR_NONE || !s->running)
        return ROUTER_NEVER;
    for (const struct part *p = s->part; p != NULL; p = p->next)
        for (const struct call *c = p->calls; c != NULL; c = c->next) {
            at = c->watch.deadline < at ? c->watch.deadline : at;
            at = c->watch.late_at < at ? c->watch.late_at : at;
            at = c->watch.compare_at < at ? c->watch.compare_at : at;
        }
    return at;
}

void timers_tick(struct session *s, uint64_t now)
{
    if (!s->running)
        return;
    if (s->census.running && now >= s->census.deadline)
        census_tick(s);
    for (struct part *p = s->part; p != NULL; p = p->next)
        for (struct call *c = p->calls; c != NULL && s->base.failure.code == ERROR_NONE;
             c = c->next) {
            if (now >= c->watch.deadline)
                call_overdue(c, now);
            if (now >= c->watch.late_at && !c->watch.overdue)
                call_late(c, now);
            if (now >= c->watch.compare_at)
                compare_send(c, now);
        }
}
