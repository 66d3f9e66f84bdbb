/* Barriers, and how groups are opened: a node's client waits until a client has entered the barrier of that
 * name at every node.
 *
 * A barrier is an exchange without blocks. Node MEMBERSHIP_ROOT prepares it when it is entered there; any other
 * node is ready when it is entered there. So `go` means that all nodes have entered. If a client enters before
 * the root's prepare arrives, its job is ENTERED until it gets the root's attempt. Faults, deadlines and
 * clients that leave end a barrier as they end any exchange: on all nodes, with the same error. Two faults do
 * not end it: a link that goes down before all nodes have entered, and a node without memory for a group. The
 * root then withdraws its attempt (abort.c), and jobs that have entered wait for the next one.
 *
 * The root of a group that shrinks is the first remaining node. If that node goes down before all have entered,
 * or a node before it comes up, the root changes. The new root prepares the group as soon as it hears of that:
 * its job changes from ENTERED to WAITING. The job of the old root changes back, and its attempts end. */
#include "daemon/torusd/exchange/entry.h"

#include <string.h>

#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/membership.h"
#include "proto/elapsed.h"

static bool is_same(const struct spec *one, const struct spec *other)
{
    return one->operation == other->operation && one->shrink == other->shrink &&
           strcmp(one->barrier, other->barrier) == 0 && strcmp(one->members, other->members) == 0;
}

static bool is_of(const struct attempt *x, const struct spec *spec)
{
    return is_same(&x->spec, spec) && !attempt_all_entered(x);
}

/* Whether the job waits for its first `go`. */
static bool is_waiting(const struct job *j, const struct spec *spec)
{
    return !job_has_ended(j) && is_same(&j->spec, spec) && exchange_id_is_none(&j->resumes);
}

struct job *entry_waiting(struct exchanges *exchanges, const struct spec *spec)
{
    struct job *j = exchanges->jobs;

    while (j != NULL &&
           (!is_waiting(j, spec) || (job_is_under_way(j) && (!attempt_awaits_entry(j->attempt) ||
                                                             attempt_all_entered(j->attempt)))))
        j = j->next;
    return j;
}

struct attempt *entry_preparing(struct exchanges *exchanges, const struct spec *spec)
{
    struct attempt *x = exchanges->active;

    while (x != NULL && (!is_of(x, spec) || !attempt_awaits_entry(x) || x->job != NULL))
        x = x->next;
    return x;
}

struct job *entry_enter(struct attempt *x, struct spec *spec, const struct exchange_client *client,
                        struct error *e)
{
    uint64_t now = router_now(router_of(x)), timeout_ns = spec->timeout_ns;
    struct job *j = job_new(x->exchanges, spec, client);

    if (j == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a %s",
                        schedule_operation_name(spec->operation));
        return NULL;
    }
    j->entered_timeout_ns = timeout_ns > 0 ? timeout_ns : SPEC_LONGEST_TIMEOUT;
    j->entered_deadline = now + j->entered_timeout_ns;
    j->timeout_ns = j->entered_timeout_ns;
    j->deadline = j->entered_deadline;
    j->state = JOB_ENTERED;
    job_set_attempt(j, x);
    x->user = client->user;
    if (timeout_ns > 0 && timeout_ns < elapsed(now, x->deadline)) {
        x->timeout_ns = timeout_ns;
        x->deadline = now + timeout_ns;
    }
    return j;
}

/* Whether this node prepares the group, or is about to. */
static bool leads_group(const struct job *j)
{
    return j->state == JOB_WAITING || (job_is_under_way(j) && retry_may_withdraw(j->attempt));
}

/* Lets another node prepare the group. */
static void yield_group(struct job *j)
{
    struct attempt *x = j->attempt;
    struct error busy;

    (void)error_set(&busy, ERROR_BUSY, "another node begins the group");
    if (job_is_under_way(j)) {
        abort_send(x, &busy);
        retry_withdrawn(x, &busy);
    } else {
        job_drop_attempt(j);
    }
    j->failure.code = ERROR_NONE;
    j->fault = UNCHECKED_FAULT;
    j->timeout_ns = j->entered_timeout_ns;
    j->deadline = j->entered_deadline;
    job_enter(j, JOB_ENTERED);
}

void entry_update_root(struct job *j)
{
    struct exchanges *exchanges = j->exchanges;

    if (!kind_of_spec(&j->spec)->first_remaining_leads || !j->spec.shrink || job_has_been_open(j) ||
        (!leads_group(j) && j->state != JOB_ENTERED))
        return;
    uint32_t root = membership_root(exchanges, &j->spec);
    if (root == TORUS_NO_NODE || leads_group(j) == (root == router_rank(exchanges->set.router)))
        return;
    if (leads_group(j)) {
        yield_group(j);
        return;
    }
    j->waiting_since = router_now(exchanges->set.router);
    j->retry_at = j->pause = 0;
    j->reroutes = j->replans = j->damages = 0;
    j->former = (struct attempt_name){.handle = 0};
    job_enter(j, JOB_WAITING);
    exchanges->start_due = true;
}

/* Returns this node's attempt at the barrier, before `go`, of this root (TORUS_NO_NODE: of any root), or NULL. */
static struct attempt *find_attempt(struct exchanges *exchanges, const struct spec *spec,
                                    uint32_t root)
{
    struct attempt *x = exchanges->active;

    while (x != NULL && (!is_of(x, spec) || !state_of(x)->before_go ||
                         (root != TORUS_NO_NODE && x->root != root) || attempt_is_root(x)))
        x = x->next;
    return x;
}

int entry_check_id(struct exchanges *exchanges, const struct spec *spec,
                   const struct exchange_id *id, struct error *e)
{
    const struct attempt *x = find_attempt(exchanges, spec, id->root);

    if (x == NULL || !exchange_id_is_before(id, &x->id))
        return 0;
    return error_set(e, ERROR_BUSY, "%s \"%s\" has a newer attempt, %s",
                     schedule_operation_name(spec->operation), spec->barrier, x->id.text);
}

/* The root has withdrawn its older attempts, by an abort that may take longer over other links. In a group
 * that shrinks, attempts of other roots and of this node end, too, because the new root is now the first
 * remaining node. */
struct job *entry_prepared(struct exchanges *exchanges, const struct spec *spec, uint32_t root)
{
    struct job *j = spec->shrink ? exchanges->jobs : NULL;
    struct attempt *x;
    struct error busy;

    while (j != NULL && (!is_waiting(j, spec) || !leads_group(j)))
        j = j->next;
    if (j != NULL)
        yield_group(j);
    (void)error_set(&busy, ERROR_BUSY, "its root has started a newer attempt");
    while ((x = find_attempt(exchanges, spec, spec->shrink ? TORUS_NO_NODE : root)) != NULL)
        retry_withdrawn(x, &busy);
    j = exchanges->jobs;
    while (j != NULL && (!is_waiting(j, spec) || j->state != JOB_ENTERED))
        j = j->next;
    return j;
}

bool entry_differs(struct attempt *x, const struct spec *entered, const struct spec *prepared)
{
    struct error e;

    if (entered->unchecked == prepared->unchecked && entered->wait == prepared->wait)
        return false;
    if (entered->wait != prepared->wait)
        (void)error_set(
            &e, ERROR_USAGE,
            "node %u %s nodes that are down, node %u %s: all programs must ask for the same",
            rank_of(x), entered->wait ? "waits for" : "does not wait for", x->root,
            prepared->wait ? "does" : "does not");
    else
        (void)error_set(&e, ERROR_USAGE,
                        "node %u opens the group with%s digests, node %u with%s: all programs must "
                        "ask for the same",
                        rank_of(x), entered->unchecked ? "out" : "", x->root,
                        prepared->unchecked ? "out" : "");
    (void)error_blame_node(&e, rank_of(x));
    attempt_fail(x, &e);
    return true;
}

/* --- groups of the same name with different members --- */

/* Whether a program at a node that is a member of both would wait for the wrong group. */
static bool members_differ(const struct spec *one, const struct spec *other)
{
    return one->operation == OPERATION_GROUP && other->operation == OPERATION_GROUP &&
           one->shrink == other->shrink && strcmp(one->barrier, other->barrier) == 0 &&
           strcmp(one->members, other->members) != 0;
}

static const char *members_text(const struct spec *spec)
{
    return spec_has_members(spec) ? spec->members : "all nodes";
}

/* Sets *e: node `here` opens the group with other members than node `root`. Returns -1. */
static int say_differ(uint32_t here, const struct spec *entered, uint32_t root,
                      const struct spec *prepared, struct error *e)
{
    (void)error_set(
        e, ERROR_USAGE,
        "node %u opens group \"%.40s\" of %.60s, node %u of %.60s: all its members must "
        "give the same list",
        here, entered->barrier, members_text(entered), root, members_text(prepared));
    return error_blame_node(e, here);
}

int entry_check_members(struct exchanges *exchanges, const struct spec *spec, uint32_t root,
                        struct error *e)
{
    const uint32_t here = router_rank(exchanges->set.router);
    struct job *j = exchanges->jobs;

    if (!spec_is_member(spec, here))
        return 0;
    while (j != NULL &&
           (job_has_ended(j) || job_has_been_open(j) || !members_differ(&j->spec, spec)))
        j = j->next;
    if (j == NULL)
        return 0;
    (void)say_differ(here, &j->spec, root, spec, e);
    job_fail(j, e);
    return -1;
}

int entry_check_prepared(struct exchanges *exchanges, const struct spec *spec, struct error *e)
{
    const uint32_t here = router_rank(exchanges->set.router);
    struct attempt *x = exchanges->active;

    while (x != NULL && (!state_of(x)->before_go || x->job != NULL || attempt_is_root(x) ||
                         !exchange_id_is_none(&x->resumes) || attempt_is_passive(x) ||
                         !members_differ(&x->spec, spec)))
        x = x->next;
    if (x == NULL)
        return 0;
    (void)say_differ(here, spec, x->root, &x->spec, e);
    attempt_fail(x, e);
    return -1;
}
