/* An open group is restarted when links go down. The root withdraws the attempt on all nodes, as it does with
 * an exchange (retry.c), and prepares another one under a new id that names the first attempt
 * (Prepare.resumes). fault_watch.c notices the link, retry_without_links() (retry.c) withdraws the attempt,
 * start_queue.c starts the next one, and group/restart/ continues the calls. The functions here find the group
 * that a prepare or verdict is about. Between two attempts a node's job is ENTERED. If the root gives up, its
 * verdict names the first id, because nodes may know different later ones. The session keeps what the programs
 * have called (session.h).
 *
 * A group that has shrunk keeps its members: it stays without the nodes that it has left out, even when they
 * are up again, and without their links (membership_left_out()). Its root stays the same, even if another node
 * would be the first of a new group.
 *
 * A node that cannot continue, for example because its program has died, takes part in the next attempt and
 * objects to it, so that the objection has an id that all nodes know. A node that has lost the group, or cannot
 * continue without these links, refuses the prepare with ERROR_REFUSED: another attempt would not help, as it
 * might after ERROR_LINK. */
#include "daemon/torusd/exchange/abort/group_restart.h"

#include <string.h>

#include "daemon/torusd/exchange/record/id.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/predicates.h"

const struct attempt *group_restart_find_failed(const struct exchanges *exchanges,
                                                const struct exchange_id *first)
{
    const struct attempt *x = exchanges->ended;

    while (x != NULL &&
           (!attempt_is_open_group(x) || !attempt_is_root(x) || x->state != EXCHANGE_FAILED ||
            !exchange_id_equal(attempt_first_id(x), first)))
        x = x->next;
    return x;
}

/* Returns the id of the job's first attempt, if its group has been open. */
static const struct exchange_id *first_id(const struct job *j)
{
    return !exchange_id_is_none(&j->resumes) ? &j->resumes : attempt_first_id(j->attempt);
}

/* Returns this node's job of the open group with this first id, unless it has ended here, or NULL. */
static struct job *find_job(struct exchanges *exchanges, const struct exchange_id *first)
{
    struct job *j = exchanges->jobs;

    while (j != NULL && (job_has_ended(j) || j->state == JOB_WAITING || !job_has_been_open(j) ||
                         (j->attempt != NULL && attempt_is_root(j->attempt)) ||
                         !exchange_id_equal(first_id(j), first)))
        j = j->next;
    return j;
}

/* Returns an ended attempt of the group, preferably one that failed and so says why there is no other attempt. */
static const struct attempt *find_ended(const struct exchanges *exchanges,
                                        const struct exchange_id *first)
{
    const struct attempt *withdrawn = NULL;

    for (const struct attempt *x = exchanges->ended; x != NULL; x = x->next) {
        if (!kind_of(x)->has_session || !exchange_id_equal(attempt_first_id(x), first))
            continue;
        if (x->state != EXCHANGE_WITHDRAWN)
            return x;
        withdrawn = x;
    }
    return withdrawn;
}

/* Sets *e to the reason why this node does not have the group. */
static void say_why(const struct exchanges *exchanges, const struct exchange_id *first,
                    struct error *e)
{
    uint32_t rank = router_rank(exchanges->set.router);
    const struct attempt *x = find_ended(exchanges, first);

    if (x == NULL)
        (void)error_set(e, ERROR_REFUSED,
                        "node %u does not have the group: it went down, or had not yet heard that "
                        "the group is open",
                        rank);
    else if (x->failure.code == ERROR_NONE || x->failure.code == ERROR_BUSY)
        (void)error_set(e, ERROR_REFUSED, "node %u reports that all programs have left the group",
                        rank);
    else
        *e = x->failure;
    if (e->code == ERROR_LINK)
        e->code = ERROR_REFUSED;
}

/* Returns the job of a group that all nodes had entered, as far as the root knew, when a link went down before
 * `go` arrived here. That job waits for its next attempt, or will when the root's verdict has arrived. */
static struct job *find_early(struct exchanges *exchanges, const struct exchange_id *first)
{
    struct job *j = exchanges->jobs;

    for (; j != NULL; j = j->next) {
        const struct attempt *x = job_last_attempt(j);
        if (!kind_of_spec(&j->spec)->has_session || job_has_been_open(j) || x == NULL ||
            j->client_state != CLIENT_WAITING || !exchange_id_equal(&x->id, first))
            continue;
        if (j->state == JOB_ENTERED ||
            (job_is_under_way(j) && !attempt_is_root(x) && state_of(x)->before_go))
            return j;
    }
    return NULL;
}

void group_restart_failed(struct exchanges *exchanges, const struct exchange_id *first,
                          const struct error *why)
{
    struct job *j = find_job(exchanges, first);

    if (j == NULL)
        j = find_early(exchanges, first);
    if (j == NULL)
        return;
    if (job_is_under_way(j)) {
        j->attempt->failure = *why;
        j->attempt->verdict_heard = true;
        attempt_end(j->attempt, EXCHANGE_FAILED);
    } else {
        j->last->verdict_heard = true;
        job_end_by_verdict(j, why);
    }
}

struct job *group_restart_find(struct exchanges *exchanges, const struct exchange_id *first,
                               const struct exchange_id *id, struct error *e)
{
    struct job *j = find_job(exchanges, first);

    if (j == NULL)
        j = find_early(exchanges, first);
    if (j == NULL) {
        say_why(exchanges, first, e);
        return NULL;
    }
    const struct attempt *x = job_last_attempt(j);
    if (!exchange_id_is_before(id, &x->id))
        return j;
    (void)error_set(e, ERROR_BUSY, "the group has been restarted as %s", x->id.text);
    return NULL;
}
