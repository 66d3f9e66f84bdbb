/* How a waiting job reacts when a link or node goes down, or a deadline passes. It may wait to be started,
 * for its next attempt, or where it was entered for its first attempt. */
#include "daemon/torusd/exchange/phases/job_watch.h"

#include <string.h>

#include "daemon/torusd/exchange/abort/fail.h"
#include "daemon/torusd/exchange/abort/retry.h"
#include "daemon/torusd/exchange/abort/verdict.h"
#include "daemon/torusd/exchange/phases/fault_watch.h"
#include "daemon/torusd/exchange/phases/waiting.h"
#include "daemon/torusd/exchange/record/absent.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/membership.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tree_messages.h"
#include "proto/text.h"

/* Returns when a job that waits for a group's restart asks the root about the group. */
static uint64_t asks_at(const struct job *j)
{
    return job_awaits_restart(j) ? j->asks_at : ROUTER_NEVER;
}

static void ask_root(struct job *j)
{
    const struct attempt *last = j->last;
    struct error e;

    (void)error_set(&e, ERROR_LINK, "node %u waits for the group to be restarted", rank_of(last));
    (void)error_blame_node(&e, rank_of(last));
    objection_send(j->exchanges, tree_messages_port(j->exchanges, last->root), last->handle,
                   &j->resumes, last->root, &e, false);
    j->asks_at = router_now(j->exchanges->set.router) + ASK_TIME;
}

/* Whether the root that prepared and withdrew an attempt at this node is down. */
static bool leader_is_gone(const struct job *j)
{
    return job_awaits_restart(j) && fault_watch_root_gone(j->last);
}

/* Returns the rank of the needed node that is down, or TORUS_NO_NODE. */
static uint32_t needed_down(const struct job *j)
{
    const struct left_out out = membership_left_out_next(j);

    return out.down ? TORUS_NO_NODE : membership_first_down(j->exchanges, out.nodes);
}

/* Judges a fault at a node that is not the root. The root decides, unless nothing is heard of it for long. */
static void judge_entered_group(struct job *j, uint64_t now, const struct error *e)
{
    if (leader_is_gone(j) || now >= j->fault.at + VERDICT_TIME)
        job_end_failed(j, e);
}

static void judge_fault(struct job *j, uint64_t now)
{
    uint32_t down = needed_down(j);
    struct error e = j->fault.e;
    bool follows = job_awaits_restart(j);
    uint32_t root = follows ? j->last->root : router_rank(j->exchanges->set.router);

    if (leader_is_gone(j))
        fault_watch_name_root(j->last, &e);
    else if (down != TORUS_NO_NODE && down != root)
        fault_watch_name_down(down, &e);
    if (follows) {
        judge_entered_group(j, now, &e);
        return;
    }
    j->fault.down = down;
    if (down != TORUS_NO_NODE && now < absent_dead_at(j->exchanges, down))
        return;
    if (job_waits_for_nodes(j))
        return; /* the job waits until its timeout */
    if (down != TORUS_NO_NODE || now >= j->fault.at + absent_report_time(j->exchanges))
        job_fail(j, &e);
}

void job_watch_topology(struct job *j)
{
    uint64_t now = router_now(j->exchanges->set.router);
    bool fault, clears = job_survives_link_loss(j);

    if (!job_waits(j))
        return;
    j->fault.unchecked = false;
    fault = (j->fault.at == ROUTER_NEVER || clears) &&
            (membership_prevents_start(j, &j->fault.e) || leader_is_gone(j));
    if (!fault && clears) {
        j->exchanges->start_due |= j->fault.at != ROUTER_NEVER;
        j->fault = NO_FAULT;
    }
    if (fault && j->fault.at == ROUTER_NEVER)
        j->fault.at = now;
    if (j->fault.at != ROUTER_NEVER)
        judge_fault(j, now);
}

/* Returns when the fault is judged next. */
static uint64_t next_judgement(const struct job *j)
{
    if (job_awaits_restart(j))
        return j->fault.at + VERDICT_TIME;
    if (job_waits_for_nodes(j))
        return ROUTER_NEVER; /* until links come up */
    if (j->fault.down != TORUS_NO_NODE)
        return absent_dead_at(j->exchanges, j->fault.down);
    return j->fault.at + absent_report_time(j->exchanges);
}

uint64_t job_watch_deadline(const struct job *j)
{
    bool follows = job_awaits_restart(j);
    uint64_t at = j->deadline, other = ROUTER_NEVER;

    if (!job_waits(j))
        return ROUTER_NEVER;
    if (j->fault.unchecked)
        return 0;
    if (j->state == JOB_WAITING)
        at = retry_deadline(j);
    if (follows && absent_dead_at(j->exchanges, j->last->root) < at)
        at = absent_dead_at(j->exchanges, j->last->root);
    if (j->fault.at != ROUTER_NEVER)
        other = next_judgement(j);
    else if (follows)
        other = fault_watch_root_differs_until(j->last);
    at = other < at ? other : at;
    return asks_at(j) < at ? asks_at(j) : at;
}

static void describe_waiting(const struct job *j, struct error *e)
{
    double seconds = (double)j->timeout_ns / 1e9;

    if (j->reroutes + j->damages > 0)
        (void)error_set(e, ERROR_TIMEOUT, "not finished within %.1f s, which included %u %s: %s",
                        seconds, j->reroutes + j->damages,
                        text_plural(j->reroutes + j->damages, "retry", "retries"), j->failure.text);
    else if (j->failure.code == ERROR_BUSY)
        (void)error_set(e, ERROR_TIMEOUT, "not started within %.1f s: %s", seconds,
                        j->failure.text);
    else
        (void)error_set(e, ERROR_TIMEOUT, "not started within %.1f s: other exchanges are running",
                        seconds);
}

static void time_is_over(struct job *j)
{
    double seconds = (double)j->timeout_ns / 1e9;
    struct sentence awaited = {.used = 0};
    struct error e;

    waiting_describe(j, &awaited);
    if (awaited.used > 0)
        (void)error_set(&e, ERROR_TIMEOUT, "timed out after %.1f s while waiting for %s", seconds,
                        awaited.text);
    /* Barriers and groups begin when all have entered, but at the root they may still wait for memory. */
    else if (j->state == JOB_WAITING &&
             (!kind_of_spec(&j->spec)->is_entered || j->failure.code == ERROR_BUSY))
        describe_waiting(j, &e);
    else
        (void)error_set(&e, ERROR_TIMEOUT, "not finished within %.1f s; node %u: round 1 of 1, %s",
                        seconds, router_rank(j->exchanges->set.router), job_states[j->state].name);
    job_fail(j, &e);
}

void job_watch_tick(struct job *j, uint64_t now)
{
    if (j->fault.unchecked)
        job_watch_topology(j);
    if (!job_waits(j))
        return;
    if (j->fault.at == ROUTER_NEVER && leader_is_gone(j))
        j->fault.at = now;
    if (j->fault.at != ROUTER_NEVER)
        judge_fault(j, now);
    if (now >= asks_at(j))
        ask_root(j);
    if (job_waits(j) && now >= j->deadline)
        time_is_over(j);
}
