#include "daemon/torusd/group/record/call.h"

#include <stdlib.h>
#include <utlist.h>

/* Returns the time in this many nanoseconds; 0: never. */
static uint64_t time_after(const struct part *p, uint64_t nanoseconds)
{
    uint64_t now = router_now(p->session->base.set.router);

    return nanoseconds > 0 && nanoseconds < ROUTER_NEVER - now ? now + nanoseconds : ROUTER_NEVER;
}

struct call *call_add(struct part *p, struct checked_call *what, uint64_t name, bool internal)
{
    struct call *c = calloc(1, sizeof *c);

    if (c == NULL) {
        checked_free(what);
        return NULL;
    }
    c->part = p;
    c->what = *what;
    c->name = name;
    c->internal = internal;
    c->state = p->agreed ? CALL_QUEUED : CALL_SUSPENDED;
    c->number = p->next_number++;
    c->signature =
        checked_signature(&c->what, p->members.count, p->session->unchecked, p->internal_calls);
    c->compares_data = router_least_minor(p->session->base.set.router) >= DATA_KIND_MINOR;
    if (c->compares_data)
        call_set_data(c, &c->what.call.data, p->members.own);
    p->internal_calls += internal;
    p->signature[c->number % SIGNATURES] = c->signature;
    c->watch.deadline = time_after(p, c->what.call.timeout_ns);
    c->watch.late_at = time_after(p, c->what.call.late_ns);
    c->watch.compare_at = ROUTER_NEVER;
    call_choose_size(c);
    call_end_attempt(c);
    DL_APPEND(p->calls, c);
    engine_note(&p->session->base, TRACE_CALL_BEGUN, c->what.call.operation,
                TRACE_CALL(p->mask, c->number));
    return c;
}

void call_set_data(struct call *c, const struct data_kind *data, uint32_t member)
{
    c->data = *data;
    c->data_member = member;
    for (unsigned stage = 0; stage < STAGES; stage++)
        call_mark_data(c, &c->attempt.mark[stage]);
}

void call_mark_data(const struct call *c, struct peer_group_call *mark)
{
    const bool is_known = data_kind_is_known(&c->data);

    mark->data_type = c->data.type;
    mark->data_shape = c->data.shape;
    mark->data_member = is_known && c->data_member != c->part->members.own ? c->data_member + 1 : 0;
}

void call_choose_size(struct call *c)
{
    const bool uneven = c->what.call.operation == GROUP_ALLTOALLV,
               large = c->what.total > c->part->limits.eager;

    c->large = large && !uneven; /* only the first wave tells how large an uneven exchange is */
    c->waves = large || uneven || c->what.total == 0;
}

void call_free(struct call *c)
{
    DL_DELETE(*call_list(c), c);
    call_end_attempt(c);
    if (blocks_are_there(&c->blocks))
        blocks_free(&c->blocks);
    checked_free(&c->what);
    free(c);
}

bool call_spreads_result(const struct call *c)
{
    uint32_t operation = c->what.call.operation;

    return c->over != CALL_OVER_NOWHERE &&
           (operation == GROUP_ALLREDUCE || operation == GROUP_PART);
}
