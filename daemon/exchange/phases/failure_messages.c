/* What nodes hear of each other about attempts that fail: a node's objection on its way to the root, and what the root
 * makes of it; the root's verdict, and what a node makes of that. */
#include "daemon/exchange/phases/failure_messages.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/abort/fail.h"
#include "daemon/exchange/abort/group_restart.h"
#include "daemon/exchange/abort/retry.h"
#include "daemon/exchange/abort/verdict.h"
#include "daemon/exchange/commit/in_doubt.h"
#include "daemon/exchange/record/avoided.h"
#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/kept_blocks.h"
#include "daemon/exchange/record/predicates.h"
#include "daemon/exchange/record/table.h"
#include "daemon/exchange/record/times.h"
#include "daemon/exchange/record/tree_messages.h"
#include "proto/text.h"

static void take_error(enum error_code code, const char *reason, struct error *e)
{
    e->code = code;
    e->culprit = (struct culprit){.kind = CULPRIT_NONE};
    text_printable(e->text, sizeof e->text, reason);
}

/* The link to the parent is up again: what was said on the one before may never have arrived. */
void objections_repeat(struct exchanges *all, unsigned port)
{
    for (struct attempt *x = all->active; x != NULL; x = x->next)
        if (state_of(x)->awaits_verdict && x->tree.parent == (int)port)
            objection_send(all, (int)port, x->handle, &x->id, x->root, &x->failure, x->damaged);
}

/* Whether whom an objection is about is behind the port that it has come by. */
static bool is_behind(const struct attempt *x, unsigned port, const struct culprit *culprit)
{
    return culprit->kind != CULPRIT_NONE && culprit->node < torus_of(x)->nodes &&
           avoided_branch(x, culprit->node) == (int)port;
}

/* A node is believed about what is behind its own link. What an objection says of others only, the neighbour there
 * says: it may be to blame itself. */
static void name_teller(const struct attempt *x, unsigned port, struct error *e)
{
    uint32_t teller = torus_neighbour(torus_of(x), rank_of(x), port);

    if (is_behind(x, port, &e->culprit))
        return;
    (void)error_wrap(e, "node %u says", teller);
    (void)error_blame_node(e, teller);
}

/* The root's. A link that it may avoid is a matter for fault_watch.c, like those that it has heard of by
 * itself. */
static void hear_objection(struct attempt *x, const struct error *why, bool again)
{
    if (why->code == ERROR_REFUSED && attempt_is_open_group(x)) {
        struct error lost = *why;
        lost.code = ERROR_LINK; /* which it has failed for */
        attempt_fail(x, &lost);
    } else if (again && why->code == ERROR_DAMAGED) {
        attempt_damaged(x, why);
    } else if (why->code != ERROR_LINK || !retry_after_link_loss(x)) {
        attempt_fail(x, why);
    } else if (x->fault.at == ROUTER_NEVER) {
        x->fault.at = router_now(router_of(x));
        x->fault.e = *why;
    }
}

/* The verdict on an attempt that was withdrawn has had the time to arrive everywhere, or another one has begun. */
static bool has_passed(const struct attempt *x)
{
    const struct job *j = x->job;

    return j == NULL || j->state != JOB_WAITING ||
           router_now(router_of(x)) >= j->back_at + LINK_LOSS_GATHER_TIME;
}

/* Not the root: it has told this node that the attempt is over. Of an open group only the root knows what
 * has become of it. */
static bool has_heard(const struct attempt *x)
{
    return x->verdict_heard && (x->state == EXCHANGE_FAILED ||
                                (x->state == EXCHANGE_WITHDRAWN && !attempt_is_open_group(x)));
}

/* What was said of it may have been lost with a link that was not known to be down. Who has heard the
 * verdict passes it on; the root may have given its exchange another name by now (then `x` is NULL). Returns
 * whether it is over. */
static bool answer(struct exchanges *all, unsigned port, const struct attempt *x,
                   const struct exchange_id *id, const struct peer_objection *message)
{
    struct router *router = all->set.router;
    bool root = message->root == router_rank(router);
    struct error over;

    bool renamed = root && x == NULL && attempt_find_id(all, id) == NULL;
    bool waits = root && x != NULL && x->state == EXCHANGE_WITHDRAWN && has_passed(x);

    const struct attempt *group = root ? group_restart_find_failed(all, id) : NULL;
    if (group != NULL)
        over = group->failure;
    else if (x != NULL && (root ? x->state == EXCHANGE_FAILED : has_heard(x)))
        over = x->failure;
    else if ((renamed || waits) && id->boot == (uint32_t)router_boot(router))
        (void)error_set(&over, ERROR_BUSY, "this attempt was withdrawn");
    else
        return false;
    verdict_answer(all, port, message->exchange, id, &over);
    return true;
}

int objection_heard(struct exchanges *all, unsigned port, const struct peer_objection *message,
                    struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    uint32_t rank = router_rank(all->set.router);
    struct attempt *x = attempt_find(all, message->exchange);
    struct exchange_id id;
    struct error why;
    int here;

    if (exchange_id_read(&id, message->id, t->nodes, "objection", e) != 0)
        return -1;
    if (message->root >= t->nodes)
        return error_set(e, ERROR_PROTOCOL, "objection for node %u of %u", message->root, t->nodes);
    if (x != NULL && (!exchange_id_equal(&x->id, &id) || x->root != message->root))
        x = NULL;
    here = message->root == rank ? -1
           : x != NULL           ? objection_port(x)
                                 : tree_messages_port(all, message->root);
    if (here == (int)port) /* who is below this node has no way to it any more: another one */
        here = tree_messages_port(all, message->root);
    if (here == (int)port)
        return 0; /* its sender knows of other links that are down than this node */
    if (answer(all, port, x, &id, message))
        return 0;
    take_error(message->code, message->reason, &why);
    why.culprit = message->culprit;
    if (message->root != rank) {
        if (x != NULL && !tree_messages_is_child(
                             x, port)) /* the root takes it for that of a node behind this one */
            (void)error_wrap(&why, "node %u says", torus_neighbour(t, rank, port));
        objection_send(all, here, message->exchange, &id, message->root, &why, message->again);
        return 0;
    }
    if (x != NULL && attempt_is_root(x) && !state_of(x)->unheard && !state_of(x)->ended) {
        name_teller(x, port, &why);
        hear_objection(x, &why, message->again);
    }
    return 0;
}

static bool may_hear(const struct attempt *x)
{
    return !attempt_is_root(x) && x->state != EXCHANGE_COMMITTING && x->state != EXCHANGE_COMMITTED;
}

/* The root may have decided to commit what this node has finished. Then its verdict is believed only from
 * its direction; it is flooded over all links, so it comes from there as well. */
static bool may_come_from(const struct attempt *x, unsigned port)
{
    if (!state_of(x)->may_be_committed)
        return true;
    return x->tree.parent == (int)port || tree_messages_port(x->all, x->root) == (int)port;
}

/* Its job was to retry, and does not. */
static bool is_last_word(const struct attempt *x, const struct peer_verdict *message)
{
    return x->state == EXCHANGE_WITHDRAWN && message->code != ERROR_BUSY;
}

/* What the root's verdict makes of an attempt. */
static void take_verdict(struct attempt *x, const struct error *why)
{
    struct job *j = x->job;

    switch (x->state) {
    case EXCHANGE_IN_DOUBT:
        x->failure = *why;
        (void)in_doubt_resolve(x->all, &x->id, false);
        break;
    case EXCHANGE_WITHDRAWN:
        if (j != NULL && j->last == x && j->state == JOB_ENTERED) {
            job_end_by_verdict(j, why);
        } else {
            x->failure = *why;
            attempt_end(x, EXCHANGE_FAILED);
        }
        break;
    case EXCHANGE_FAILED: /* this node has ended it alone, and says from now on what all say */
        if (why->code != ERROR_BUSY) {
            x->failure = *why;
            log_warning("exchange %s failed: %s", x->id.text, x->failure.text);
            kept_blocks_drop(x);
        }
        break;
    default:
        if (why->code == ERROR_BUSY) {
            retry_withdrawn(x, why);
        } else {
            x->failure = *why;
            attempt_end(x, EXCHANGE_FAILED);
        }
        break;
    }
}

int verdict_heard(struct exchanges *all, unsigned port, const struct peer_verdict *message,
                  struct error *e)
{
    struct attempt *x = attempt_find(all, message->exchange);
    uint32_t most = router_torus(all->set.router)->nodes;
    struct exchange_id id;
    struct error why;

    if (exchange_id_read(&id, message->id, most, "verdict", e) != 0)
        return -1;
    take_error(message->code, message->reason, &why);
    if (x == NULL || !exchange_id_equal(&x->id, &id)) {
        verdict_pass_unknown(all, port, &id, message);
        if (why.code != ERROR_BUSY)
            group_restart_failed(all, &id, &why);
        return 0;
    }
    if (!may_hear(x) || !may_come_from(x, port) || (x->verdict_heard && !is_last_word(x, message)))
        return 0;
    x->verdict_heard = true;
    x->before_go = message->before_go;
    if (x->job != NULL)
        x->job->ready &= !x->before_go;
    uint32_t left = message->left < most ? message->left : most;
    if (left > 0)
        left--;
    else if (verdict_is_cut(x) || x->tree.parent != (int)port)
        left = most;
    verdict_pass_on(x, &why, left, (int)port);
    take_verdict(x, &why);
    return 0;
}
