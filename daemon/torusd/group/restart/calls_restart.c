#include "daemon/torusd/group/restart/calls_restart.h"

#include <string.h>
#include <utlist.h>

#include "daemon/torusd/group/calls/call_match.h"
#include "daemon/torusd/group/calls/call_rounds.h"
#include "daemon/torusd/group/calls/calls.h"

/* Suspends a call, and records for the agreement how far it was. */
static void suspend_call(struct call *c)
{
    const struct engine *data = c->attempt.engine[STAGE_DATA];

    c->watch.overdue = false;
    if (c->part->agreed) { /* otherwise the values from when the first link went down still hold */
        c->suspended.whole = data != NULL && data->rounds_finished == c->attempt.rounds;
        c->suspended.finished = c->suspended.settled = c->skip;
        if (c->large && data != NULL) {
            c->suspended.finished += data->rounds_finished * c->attempt.round_bytes;
            c->suspended.settled += call_rounds_settled(c) * c->attempt.round_bytes;
        }
    }
    call_enter(c, CALL_SUSPENDED);
}

void calls_suspend(struct part *p)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->calls, c, next) {
        struct error e;
        if (!call_is_complete(c))
            suspend_call(c);
        else if (call_retire(c, &e) != 0)
            call_free(c); /* a member that needs this call fails */
    }
}

/* Returns the call of this number if it is not over here, or NULL. */
static const struct call *find_call(const struct part *p, uint64_t number)
{
    const struct call *c = p->calls;

    while (c != NULL && c->number != number)
        c = c->next;
    return c;
}

void calls_report(const struct part *p, struct agreed *agreed)
{
    const uint64_t first = calls_first(p), half = AGREEMENT_CALLS / 2;

    agreed->first = first;
    for (uint64_t n = first > half ? first - half : 0; n < first + half; n++) {
        const struct call *c = find_call(p, n);
        uint64_t i = n % AGREEMENT_CALLS;
        if (c != NULL) {
            agreed->settled[i] = c->suspended.settled;
            if (call_is_for_others(c)) /* it is being made again, and is over here */
                agreed->over[i] = OVER_SOMEWHERE;
        } else if (n < p->next_number) {
            agreed->over[i] = calls_were_over_everywhere(p, n) ? OVER_EVERYWHERE : OVER_SOMEWHERE;
        }
    }
}

/* Ends a call that is over at all members, because all its data was here when the link went down. */
static int end_here(struct call *c, struct error *e)
{
    if (c->what.total > 0 && !c->suspended.whole)
        return error_set(
            e, ERROR_PROTOCOL,
            "%s is said to be over everywhere, but not all of its data has arrived here",
            group_operation_name(c->what.call.operation));
    return call_complete(c, true, e);
}

/* Prepares the call's blocks for another attempt, which sends the copy of the data again if there is one. */
static void renew_blocks(struct call *c)
{
    struct blocks *b = &c->blocks;

    overwritten_forget(&b->overwritten, c->skip);
    overwritten_restore(&b->overwritten);
    if (call_is_for_others(c) || (b->copied && !call_spreads_result(c) && c->skip == 0))
        blocks_rewind(b);
    else
        blocks_free(b);
}

/* Makes a call again like a new one, except for what all members have already. */
static int make_again(struct call *c, uint64_t settled, struct error *e)
{
    if (settled > c->suspended.finished)
        return error_set(e, ERROR_PROTOCOL, "more of %s is said to be over than has arrived here",
                         group_operation_name(c->what.call.operation));
    c->skip = settled;
    call_choose_size(c);
    if (c->what.call.operation == GROUP_PART && !call_is_for_others(c))
        memset(c->what.call.receive.memory->data, 0, TABLE_BYTES);
    if (blocks_are_there(&c->blocks))
        renew_blocks(c);
    call_enter(c, CALL_QUEUED);
    return 0;
}

/* Takes those kept calls out of the list that must be made again for other members. */
static void take_out_kept(struct part *p, const struct agreed *agreed)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->kept, c, next)
        if (c->number >= agreed->first &&
            agreed->over[c->number % AGREEMENT_CALLS] != OVER_EVERYWHERE)
            call_enter(c, CALL_SUSPENDED);
}

int calls_resume(struct part *p, const struct agreed *agreed, struct error *e)
{
    const uint64_t first = agreed->first, here = calls_first(p);
    struct call *c, *next;

    if (first > here || here - first > AGREEMENT_CALLS / 2)
        return error_set(e, ERROR_PROTOCOL, "members disagree about which calls are over");
    take_out_kept(p, agreed);
    for (uint64_t n = first; n < here; n++)
        if (agreed->over[n % AGREEMENT_CALLS] != OVER_EVERYWHERE && find_call(p, n) == NULL)
            return error_set(e, ERROR_PROTOCOL,
                             "member %u no longer has a call that must be made again",
                             p->members.own);
    DL_FOREACH_SAFE (p->calls, c, next) {
        bool known = c->number - first < AGREEMENT_CALLS / 2;
        uint64_t over = known ? agreed->over[c->number % AGREEMENT_CALLS] : OVER_NOWHERE;
        uint64_t settled = known ? agreed->settled[c->number % AGREEMENT_CALLS] : 0;
        if (!call_is_for_others(c))
            c->over = over == OVER_SOMEWHERE ? CALL_OVER_ELSEWHERE : CALL_OVER_NOWHERE;
        if (over == OVER_EVERYWHERE ? end_here(c, e) != 0 : make_again(c, settled, e) != 0)
            return -1;
    }
    return calls_retire(p, e);
}
