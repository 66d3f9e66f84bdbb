/* How an attempt reacts when a link or node goes down, or a deadline passes. A node that hears no abort ends
 * the attempt by itself after a while. */
#include "daemon/torusd/exchange/fault_watch.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/commit.h"
#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/piece_repair.h"
#include "daemon/torusd/exchange/rounds.h"
#include "daemon/torusd/exchange/status.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/text.h"

/* Whether this node knows another start of the root than the one in the attempt's id. Either the root was
 * restarted, or this node has not heard of that start yet. */
static bool root_differs(const struct attempt *x)
{
    uint64_t boot = router_topology(router_of(x))->entry[x->root].boot;

    return !attempt_is_root(x) && (uint32_t)boot != x->id.boot;
}

/* Whether the root is down, or is up again without knowing the attempt. Ids of two starts do not show which
 * start is later. The root counts as restarted if this node heard of the other start after the attempt began,
 * or still sees it after ABORT_TIME. */
static bool fault_watch_root_gone(const struct attempt *x)
{
    const struct topology *topology = router_topology(router_of(x));
    uint64_t now = router_now(router_of(x));

    if (attempt_is_root(x))
        return false;
    return now >= absent_dead_at(x->exchanges, x->root) ||
           (root_differs(x) &&
            (topology->entry[x->root].boot != x->root_boot || now >= x->made_at + ABORT_TIME));
}

/* Returns until when two starts of the root cannot be told apart; ROUTER_NEVER: only one start is known. */
static uint64_t fault_watch_root_differs_until(const struct attempt *x)
{
    return root_differs(x) ? x->made_at + ABORT_TIME : ROUTER_NEVER;
}

/* Sets *e to a text that says that the root went down. */
static void fault_watch_name_root(const struct attempt *x, struct error *e)
{
    (void)error_set(e, ERROR_LINK, "node %u, where the %s began, went down", x->root,
                    schedule_operation_name(x->spec.operation));
    (void)error_blame_node(e, x->root);
}

/* Sets *e to a text that says that this needed node, which is not the root, is down. */
static void fault_watch_name_down(uint32_t node, struct error *e)
{
    (void)error_set(e, ERROR_LINK, "node %u is down: none of its links is up", node);
    (void)error_blame_node(e, node);
}

static void enter_doubt(struct attempt *x, const struct error *e)
{
    x->failure = *e;
    in_doubt_add(x, false);
    attempt_end(x, EXCHANGE_IN_DOUBT);
}

static void fail_alone(struct attempt *x, const struct error *e)
{
    x->failure = *e;
    attempt_end(x, EXCHANGE_FAILED);
}

/* Ends the attempt of a node that waits for an abort, if its root is gone. Returns whether it did. */
static bool fail_without_root(struct attempt *x)
{
    struct error e;

    if (!fault_watch_root_gone(x))
        return false;
    fault_watch_name_root(x, &e);
    fail_alone(x, &e);
    return true;
}

/* Returns how long after a fault a node objects. The root may not know of the fault: nodes far away do not hear
 * of a link that comes up again at once. A node reports its own links soon if the root can retry. */
static uint64_t nack_time(const struct attempt *x)
{
    if (x->fault.lost == 0 || !attempt_survives_link_loss(x) || state_of(x)->may_be_committed ||
        (state_of(x)->moves && !kind_of(x)->retries_running))
        return ABORT_TIME;
    return LINK_LOSS_GATHER_TIME;
}

/* Root: whether it retries, either without what is down or when that is up again. */
static bool root_retries(const struct attempt *x, bool node_down, struct error *why)
{
    if (!retry_after_link_loss(x) || router_now(router_of(x)) < x->fault.at + LINK_LOSS_GATHER_TIME)
        return false;
    return attempt_waits_for_nodes(x) ||
           (!node_down && membership_check_now(x->exchanges, membership_left_out(x), why) == 0);
}

/* Root: judges a fault. `e` names the link, or the needed node `down` that is down. */
static void judge_at_root(struct attempt *x, uint64_t now, uint32_t down, const struct error *e)
{
    bool node_down = down != TORUS_NO_NODE;
    struct error why = *e;

    x->fault.down = down;
    if (node_down && now < absent_dead_at(x->exchanges, down))
        return;
    x->fault.judged_at = now;
    if (root_retries(x, node_down, &why))
        retry_without_links(x, e);
    else if (node_down || now >= x->fault.at + absent_report_time(x->exchanges))
        attempt_fail(x, &why);
}

/* Judges a fault, as soon as that is possible. */
static void judge_fault(struct attempt *x, uint64_t now)
{
    const struct left_out out = membership_left_out(x);
    uint32_t down = membership_first_down(x->exchanges, out);
    bool root_down = fault_watch_root_gone(x), late = now >= x->fault.at + ABORT_TIME;
    struct error e = x->fault.e;

    if (x->state == EXCHANGE_DECIDING)
        return;
    if (root_down)
        fault_watch_name_root(x, &e);
    else if (down != TORUS_NO_NODE && down != x->root)
        fault_watch_name_down(down, &e);
    /* Some nodes have not entered yet, so the barrier has not ended on any node. */
    if (root_down && attempt_awaits_entry(x) && attempt_waits_for_nodes(x) &&
        attempt_is_awaited(x)) {
        retry_withdrawn(x, &e);
        return;
    }
    if (state_of(x)->may_be_committed) {
        if (root_down || late)
            enter_doubt(x, &e);
    } else if (attempt_is_root(x)) {
        judge_at_root(x, now, down, &e);
    } else if (root_down) {
        fail_alone(x, &e);
    } else if (now >= x->fault.at + nack_time(x)) {
        attempt_fail(x, &e);
    }
}

/* How long links must be up before a group uses them again: each restart pauses the group. */
#define RESTORED_TIME (10 * SECONDS)

/* Root of an open group: restarts it when links that it avoids are up again. */
static void look_for_restored(struct attempt *x, uint64_t now)
{
    bool restored = state_of(x)->moves && kind_of(x)->has_session && attempt_is_root(x) &&
                    x->fault.at == ROUTER_NEVER && avoided_are_restored(x);

    if (!restored)
        x->fault.restart_at = 0;
    else if (x->fault.restart_at == 0)
        x->fault.restart_at = now + RESTORED_TIME;
}

/* Returns a port of this node, from `from` on, whose link is down, or -1. */
static int port_down(const struct attempt *x, unsigned from)
{
    const struct router *r = router_of(x);
    uint32_t up = router_topology(r)->entry[router_rank(r)].up;

    for (unsigned port = from; port < torus_ports(router_torus(r)); port++)
        if (((up | avoided_ports(x, rank_of(x))) & 1u << port) == 0 &&
            torus_neighbour(router_torus(r), router_rank(r), port) != TORUS_NO_NODE)
            return (int)port;
    return -1;
}

bool fault_watch_own_link_down(const struct attempt *x, struct error *e)
{
    char name[TORUS_PORT_NAME_SIZE];
    int port = port_down(x, 0);

    if (port < 0)
        return false;
    (void)error_set(e, ERROR_LINK, "its link %s to node %u is down",
                    torus_port_name(torus_of(x), rank_of(x), (unsigned)port, name),
                    torus_neighbour(torus_of(x), rank_of(x), (unsigned)port));
    (void)error_blame_link(e, rank_of(x), (uint32_t)port);
    return true;
}

void fault_watch_topology(struct attempt *x)
{
    uint64_t now = router_now(router_of(x));

    if (state_of(x)->unheard)
        return; /* the job waits for links */
    for (int port = port_down(x, 0); port >= 0; port = port_down(x, (unsigned)port + 1)) {
        bool silent = state_of(x)->awaits_abort && port == x->tree.parent &&
                      (x->fault.lost & 1u << port) == 0;
        if (silent) /* the nack or its answer may have been lost */
            nack_send(x->exchanges, tree_messages_port(x->exchanges, x->root), x->handle, &x->id,
                      x->root, &x->failure, x->damaged);
        x->fault.lost |= 1u << port;
        if (x->local.engine != NULL)
            engine_lose_port(x->local.engine, (unsigned)port);
    }
    if (state_of(x)->awaits_abort) {
        fail_without_root(x);
        return;
    }
    if (x->state == EXCHANGE_COMMITTING) {
        commit_topology(x);
        return;
    }
    if (x->fault.at == ROUTER_NEVER && (avoided_fault(x, &x->fault.e) || fault_watch_root_gone(x)))
        x->fault.at = now;
    if (x->fault.at != ROUTER_NEVER)
        judge_fault(x, now);
    look_for_restored(x, now);
}

/* Returns when the fault is judged next. */
static uint64_t next_judgement(const struct attempt *x)
{
    bool converged = x->fault.judged_at >= x->fault.at + LINK_LOSS_GATHER_TIME;

    if (!attempt_is_root(x))
        return x->fault.at + nack_time(x);
    if (x->fault.down != TORUS_NO_NODE)
        return absent_dead_at(x->exchanges, x->fault.down);
    return x->fault.at + (retry_after_link_loss(x) && !converged
                              ? LINK_LOSS_GATHER_TIME
                              : absent_report_time(x->exchanges));
}

uint64_t fault_watch_deadline(const struct attempt *x)
{
    uint64_t gone = attempt_is_root(x) ? ROUTER_NEVER : absent_dead_at(x->exchanges, x->root);
    uint64_t abort = ROUTER_NEVER, at = x->deadline, repair = piece_repair_deadline(x);

    if (state_of(x)->unheard)
        return ROUTER_NEVER;
    if (x->state == EXCHANGE_DECIDING)
        return attempt_is_awaited(x) ? at : ROUTER_NEVER;
    if (x->state == EXCHANGE_COMMITTING)
        return attempt_is_root(x) ? commit_deadline(x) : at;
    at = gone < at ? gone : at;
    if (state_of(x)->awaits_abort)
        return at;
    if (rounds_are_due(x))
        return 0;
    if (x->fault.at != ROUTER_NEVER)
        abort = next_judgement(x);
    else if (x->fault.restart_at != 0)
        abort = x->fault.restart_at;
    else if (root_differs(x))
        abort = x->made_at + ABORT_TIME;
    at = repair < at ? repair : at;
    return abort < at ? abort : at;
}

/* Sets `text` to the children that have not told what this node waits for; "": none. */
static void describe_awaited(const struct attempt *x, char *text, size_t size)
{
    bool rounds = state_of(x)->moves && x->rounds.round + 1 < exchange_end_round(x);
    unsigned owing = 0;
    size_t used = 0;
    char list[60] = "";

    for (unsigned i = 0; i < x->tree.children; i++) {
        unsigned port = x->tree.child[i];
        bool lacks = rounds ? x->rounds.finished_below[port] <= x->rounds.round
                            : (x->awaited & 1u << port) != 0;
        if (lacks && used < sizeof list)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%u", owing++ > 0 ? ", " : "",
                                 torus_neighbour(torus_of(x), rank_of(x), port));
    }
    text[0] = '\0';
    if (owing > 0)
        (void)snprintf(text, size, "; it waits for %s %s, or nodes behind %s",
                       owing > 1 ? "nodes" : "node", list, owing > 1 ? "them" : "it");
}

static void time_is_over(struct attempt *x)
{
    struct error e;
    char where[160], awaited[120];

    if (state_of(x)->may_be_committed) {
        (void)error_set(&e, ERROR_IN_DOUBT,
                        "its root did not announce the outcome within the timeout");
        enter_doubt(x, &e);
        return;
    }
    if (x->local.engine != NULL && state_of(x)->moves)
        engine_describe(x->local.engine, where, sizeof where);
    else
        (void)snprintf(where, sizeof where, "%s", exchange_state_name(x->state));
    describe_awaited(x, awaited, sizeof awaited);
    (void)error_set(&e, ERROR_TIMEOUT,
                    "not finished within %.1f s; node %u: %llu of %llu rounds, %s%s",
                    (double)x->timeout_ns / 1e9, rank_of(x),
                    (unsigned long long)(x->rounds.round - exchange_first_round(x)),
                    (unsigned long long)x->rounds.count, where, awaited);
    (void)error_blame_node(&e, rank_of(x));
    attempt_fail(x, &e);
}

/* Tells the client that the outcome is in doubt: it has waited long enough for a decision, or would wait in
 * vain. */
static void tell_in_doubt(struct attempt *x)
{
    struct error e;

    if (x->state == EXCHANGE_DECIDING && !attempt_is_awaited(x))
        return;
    if (x->state == EXCHANGE_COMMITTING) {
        unconfirmed_describe(decision_find(x->exchanges, &x->id), x->exchanges, &e);
        x->failure = e;
        /* This node's output is not in place yet, and is tried again later. */
        if (x->local.sink != NULL) {
            in_doubt_add(x, true);
            local_resources_close(x, true);
        }
        attempt_end(x, EXCHANGE_COMMITTED);
        return;
    }
    (void)error_set(
        &e, ERROR_IN_DOUBT,
        "all nodes have finished, but the disk of node %u has not recorded the decision "
        "within %.1f s",
        rank_of(x), (double)x->timeout_ns / 1e9);
    client_tell(x->job, &e);
}

void fault_watch_tick(struct attempt *x, uint64_t now)
{
    if (state_of(x)->unheard)
        return;
    if (state_of(x)->awaits_abort) {
        if (!fail_without_root(x) && now >= x->deadline) /* the root sends no abort */
            attempt_end(x, EXCHANGE_FAILED);
        return;
    }
    if (state_of(x)->decided) {
        if (now < fault_watch_deadline(x))
            return;
        if (attempt_is_root(x))
            tell_in_doubt(x);
        else
            commit_stop_waiting(x);
        return;
    }
    if (x->fault.at == ROUTER_NEVER && fault_watch_root_gone(x))
        x->fault.at = now;
    if (x->fault.at != ROUTER_NEVER)
        judge_fault(x, now);
    else if (x->fault.restart_at != 0 && now >= x->fault.restart_at)
        retry_links_restored(x);
    if (now >= piece_repair_deadline(x))
        piece_repair_late(x);
    if (!state_of(x)->over && now >= x->deadline)
        time_is_over(x);
}

/* --- jobs that wait ---
 *
 * How a waiting job reacts when a link or node goes down, or a deadline passes. It may wait to be started,
 * for its next attempt, or where it was entered for its first attempt. */

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
    nack_send(j->exchanges, tree_messages_port(j->exchanges, last->root), last->handle, &j->resumes,
              last->root, &e, false);
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

    return membership_first_down(j->exchanges, out);
}

/* Judges a fault at a node that is not the root. The root decides, unless nothing is heard of it for long. */
static void judge_entered_group(struct job *j, uint64_t now, const struct error *e)
{
    if (leader_is_gone(j) || now >= j->fault.at + ABORT_TIME)
        job_end_failed(j, e);
}

static void judge_job_fault(struct job *j, uint64_t now)
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
        judge_job_fault(j, now);
}

/* Returns when the fault is judged next. */
static uint64_t next_job_judgement(const struct job *j)
{
    if (job_awaits_restart(j))
        return j->fault.at + ABORT_TIME;
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
        other = next_job_judgement(j);
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

static void job_time_is_over(struct job *j)
{
    double seconds = (double)j->timeout_ns / 1e9;
    char awaited[sizeof((struct error *)0)->text];
    struct error e;

    waiting_describe(j, awaited, sizeof awaited);
    if (awaited[0] != '\0')
        (void)error_set(&e, ERROR_TIMEOUT, "timed out after %.1f s while waiting for %s", seconds,
                        awaited);
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
        judge_job_fault(j, now);
    if (now >= asks_at(j))
        ask_root(j);
    if (job_waits(j) && now >= j->deadline)
        job_time_is_over(j);
}
