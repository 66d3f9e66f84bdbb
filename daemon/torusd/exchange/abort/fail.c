/* How an attempt fails: the root decides for all nodes; any other node tells the root and waits for its verdict
 * (verdict.c). failure_messages.c handles what a node hears from others. */
#include "daemon/torusd/exchange/abort/fail.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort/retry.h"
#include "daemon/torusd/exchange/abort/verdict.h"
#include "daemon/torusd/exchange/record/attempt_state.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/missing.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/times.h"

/* Adds the number of the failed repetition to the root's error, so that all nodes name the same one. */
static void name_repetition(struct attempt *x)
{
    uint32_t kept = x->job->repetitions.kept, repeat = kept + x->spec.repeat;

    if (repeat > 1 && state_of(x)->moves)
        (void)error_wrap(&x->failure, "repetition %u of %u", kept + x->rounds.repetition + 1,
                         repeat);
}

/* Adds the nodes that have not entered the barrier or group, as far as the root knows, to the error of a
 * timeout. */
static void name_missing(const struct job *j, struct error *e)
{
    char list[128];
    uint32_t nodes;

    if (e->code != ERROR_TIMEOUT)
        return;
    nodes = exchange_missing(j, list, sizeof list);
    if (nodes == 1)
        (void)error_wrap(e, "node %s has not entered the %s", list,
                         operation_name(j->spec.operation));
    else if (nodes > 1)
        (void)error_wrap(e, "not all of nodes %s have entered the %s", list,
                         operation_name(j->spec.operation));
}

static bool may_fail(const struct attempt *x)
{
    return !state_of(x)->over && !state_of(x)->decided;
}

/* Whether an error is reported although this node already waits for the root's verdict. The first error may be
 * a lost link that the next attempt avoids. The new one concerns this node's program, which the root does not
 * know about. If the root has withdrawn this attempt, this node objects to the next one. */
static bool error_outweighs(const struct attempt *x, const struct error *e)
{
    return state_of(x)->awaits_verdict && kind_of(x)->is_entered &&
           error_is_temporary(&x->failure) && !error_is_temporary(e);
}

/* Root: fails the attempt on all nodes. */
static void fail_everywhere(struct attempt *x, const struct error *e)
{
    struct job *j = x->job;

    x->failure = *e;
    if (e->code == ERROR_DAMAGED && j->damages > 0)
        (void)error_wrap(&x->failure, "damaged again after a retry");
    name_repetition(x);
    name_missing(j, &x->failure);
    verdict_send(x, &x->failure);
    verdict_send_former(j, &x->failure);
    attempt_end(x, EXCHANGE_FAILED);
}

static void fail_attempt(struct attempt *x, const struct error *e, bool retry_may_help)
{
    if (!may_fail(x) && !error_outweighs(x, e))
        return;
    if (e->code == ERROR_BUSY && retry_may_withdraw(x)) {
        retry_later(x, e);
        return;
    }
    if (retry_may_help && retry_after_damage(x)) {
        retry_damaged(x, e);
        return;
    }
    if (attempt_is_root(x)) {
        fail_everywhere(x, e);
        return;
    }
    x->failure = *e;
    if (e->culprit.kind == CULPRIT_NONE) /* the text does not name a node either */
        (void)error_wrap_node(&x->failure, rank_of(x));
    if (e->code == ERROR_BUSY)
        log_debug("exchange %s: %s", x->id.text, x->failure.text);
    else
        log_warning("exchange %s: %s", x->id.text, x->failure.text);
    x->damaged = retry_may_help;
    objection_send(x->exchanges, objection_port(x), x->handle, &x->id, x->root, &x->failure,
                   retry_may_help);
    x->deadline = router_now(router_of(x)) + VERDICT_TIME;
    if (!state_of(x)->awaits_verdict)
        attempt_enter(x, EXCHANGE_FAILING);
}

/* Fails a job that waits for its next attempt. Nodes that expect that attempt are told why there is none. */
static void fail_waiting(struct job *j, const struct error *e)
{
    struct attempt *last = j->last;
    struct error why = *e;

    if (job_awaits_restart(j)) { /* the root decides; this node objects to the next attempt */
        if (j->failure.code == ERROR_NONE)
            j->failure = *e;
        return;
    }
    if (e->code == ERROR_DAMAGED && j->damages > 0)
        (void)error_wrap(&why, "damaged again after a retry");
    name_missing(j, &why);
    if (last != NULL && attempt_is_root(last)) {
        if (j->reroutes + j->damages > 0 && j->fault.at != ROUTER_NEVER)
            verdict_flood(last, &why);
        if (job_has_been_open(j))
            /* Nodes that were cut off hear the verdict when their links are up again. */
            last->verdict_heard = true;
    }
    verdict_send_former(j, &why);
    job_end_failed(j, &why);
}

void job_fail(struct job *j, const struct error *e)
{
    if (job_is_under_way(j))
        attempt_fail(j->attempt, e);
    else if (!job_has_ended(j))
        fail_waiting(j, e);
}

void attempt_fail(struct attempt *x, const struct error *e)
{
    fail_attempt(x, e, false);
}

void attempt_damaged(struct attempt *x, const struct error *e)
{
    fail_attempt(x, e, true);
}
