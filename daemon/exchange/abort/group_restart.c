/* A group that is open is restarted when links go down: its root withdraws the attempt everywhere, as it does
 * with an exchange (retry.c), and prepares another one, under a new id that names the first one
 * (Prepare.resumes). fault_watch.c sees the link, retry_without_links() (retry.c) withdraws the attempt, start_queue.c
 * begins the next one, and group/restart/ goes on with the calls. Here the nodes find the group that a prepare or a
 * verdict is about. Between the two attempts the job of a node is ENTERED; if the root gives up, it says so by the
 * first id, as the last one that a node knows may be any. The session keeps what the programs have called (session.h).
 *
 * A group that has been shrunk keeps the members that it has: without the nodes that it has left out,
 * also when these are up again, and without their links (membership_left_out()). Its root stays the same, whichever
 * node would be the first to prepare another one.
 *
 * Who cannot go on, because its program has died meanwhile, say, takes part in the next attempt, and
 * objects: all hear of it by the id that all know. Who cannot go on without these links, or has lost the
 * group, refuses it (ERROR_REFUSED): another attempt would not help, as it might after ERROR_LINK. */
#include "daemon/exchange/abort/group_restart.h"

#include <string.h>

#include "daemon/exchange/record/id.h"
#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/predicates.h"

const struct attempt *group_restart_find_failed(const struct exchanges *all,
                                                const struct exchange_id *first)
{
    const struct attempt *x = all->ended;

    while (x != NULL &&
           (!attempt_is_open_group(x) || !attempt_is_root(x) || x->state != EXCHANGE_FAILED ||
            !exchange_id_equal(attempt_first_id(x), first)))
        x = x->next;
    return x;
}

/* The id of its first attempt, if it has been open. */
static const struct exchange_id *first_id(const struct job *j)
{
    return !exchange_id_is_none(&j->resumes) ? &j->resumes : attempt_first_id(j->attempt);
}

/* The one of this first id that is not over here, whatever attempt it has. */
static struct job *find(struct exchanges *all, const struct exchange_id *first)
{
    struct job *j = all->jobs;

    while (j != NULL && (job_has_ended(j) || j->state == JOB_WAITING || !job_has_been_open(j) ||
                         (j->attempt != NULL && attempt_is_root(j->attempt)) ||
                         !exchange_id_equal(first_id(j), first)))
        j = j->next;
    return j;
}

/* An attempt of the group that has ended here: the one that tells why there is none after it, if any does. */
static const struct attempt *find_ended(const struct exchanges *all,
                                        const struct exchange_id *first)
{
    const struct attempt *withdrawn = NULL;

    for (const struct attempt *x = all->ended; x != NULL; x = x->next) {
        if (!kind_of(x)->has_session || !exchange_id_equal(attempt_first_id(x), first))
            continue;
        if (x->state != EXCHANGE_WITHDRAWN)
            return x;
        withdrawn = x;
    }
    return withdrawn;
}

/* Why this node does not have it. */
static void say_why(const struct exchanges *all, const struct exchange_id *first, struct error *e)
{
    uint32_t rank = router_rank(all->set.router);
    const struct attempt *x = find_ended(all, first);

    if (x == NULL)
        (void)error_set(e, ERROR_REFUSED,
                        "node %u does not have the group: it went down, or had not heard yet that "
                        "the group is open",
                        rank);
    else if (x->failure.code == ERROR_NONE || x->failure.code == ERROR_BUSY)
        (void)error_set(e, ERROR_REFUSED, "all programs have left the group, says node %u", rank);
    else
        *e = x->failure;
    if (e->code == ERROR_LINK)
        e->code = ERROR_REFUSED;
}

/* All had entered it, as far as the root knew, but a link went down before `go` came here: it waits to be
 * prepared again, or will when the root's word about that has come. */
static struct job *find_early(struct exchanges *all, const struct exchange_id *first)
{
    struct job *j = all->jobs;

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

void group_restart_failed(struct exchanges *all, const struct exchange_id *first,
                          const struct error *why)
{
    struct job *j = find(all, first);

    if (j == NULL)
        j = find_early(all, first);
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

struct job *group_restart_find(struct exchanges *all, const struct exchange_id *first,
                               const struct exchange_id *id, struct error *e)
{
    struct job *j = find(all, first);

    if (j == NULL)
        j = find_early(all, first);
    if (j == NULL) {
        say_why(all, first, e);
        return NULL;
    }
    const struct attempt *x = job_last_attempt(j);
    if (!exchange_id_is_before(id, &x->id))
        return j;
    (void)error_set(e, ERROR_BUSY, "the group has been restarted as %s", x->id.text);
    return NULL;
}
