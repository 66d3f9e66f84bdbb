/* Handles messages about attempts that fail: a node's nack on its way to the root and at the root, and the
 * root's abort. */
#include "daemon/torusd/exchange/abort.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/text.h"

static void take_error(enum error_code code, const char *reason, struct error *e)
{
    e->code = code;
    e->culprit = (struct culprit){.kind = CULPRIT_NONE};
    text_printable(e->text, sizeof e->text, reason);
}

void nacks_repeat(struct exchanges *exchanges, unsigned port)
{
    for (struct attempt *x = exchanges->active; x != NULL; x = x->next)
        if (state_of(x)->awaits_abort && x->tree.parent == (int)port)
            nack_send(exchanges, (int)port, x->handle, &x->id, x->root, &x->failure, x->damaged);
}

/* Whether the culprit that a nack names is behind the port through which it arrived. */
static bool is_behind(const struct attempt *x, unsigned port, const struct culprit *culprit)
{
    return culprit->kind != CULPRIT_NONE && culprit->node < torus_of(x)->nodes &&
           avoided_branch(x, culprit->node) == (int)port;
}

/* A neighbour is believed about the nodes behind its link. If the nack blames another node, or none, this
 * adds the name of the neighbour that passed it on, because that neighbour may be to blame itself. */
static void name_teller(const struct attempt *x, unsigned port, struct error *e)
{
    uint32_t teller = torus_neighbour(torus_of(x), rank_of(x), port);

    if (is_behind(x, port, &e->culprit))
        return;
    (void)error_wrap(e, "node %u reports", teller);
    (void)error_blame_node(e, teller);
}

/* Root: handles a nack. fault_watch.c judges lost links that the attempt may avoid, as it judges those
 * that the root has noticed itself. */
static void hear_nack(struct attempt *x, const struct error *why, bool retry_may_help)
{
    if (why->code == ERROR_REFUSED && attempt_is_open_group(x)) {
        struct error lost = *why;
        lost.code = ERROR_LINK; /* the group fails because of the link that was lost */
        attempt_fail(x, &lost);
    } else if (retry_may_help && why->code == ERROR_DAMAGED) {
        attempt_damaged(x, why);
    } else if (why->code != ERROR_LINK || !retry_after_link_loss(x)) {
        attempt_fail(x, why);
    } else if (x->fault.at == ROUTER_NEVER) {
        x->fault.at = router_now(router_of(x));
        x->fault.e = *why;
    }
}

/* Whether the abort that withdrew the attempt has had time to reach all nodes, or another attempt has begun. */
static bool has_passed(const struct attempt *x)
{
    const struct job *j = x->job;

    return j == NULL || j->state != JOB_WAITING ||
           router_now(router_of(x)) >= j->withdrawn_at + LINK_LOSS_GATHER_TIME;
}

/* Not the root: whether the root has told this node that the attempt is over. Only the root knows the state of
 * an open group. */
static bool has_heard(const struct attempt *x)
{
    return x->abort_heard && (x->state == EXCHANGE_FAILED ||
                              (x->state == EXCHANGE_WITHDRAWN && !attempt_is_open_group(x)));
}

/* Answers a nack to an attempt that is over, whose abort may have been lost with a link. A node that
 * has heard the abort passes it on. The root may have given the job a new id by now; `x` is then NULL.
 * Returns whether the attempt is over. */
static bool answer_nack(struct exchanges *exchanges, unsigned port, const struct attempt *x,
                        const struct exchange_id *id, const struct peer_nack *message)
{
    struct router *router = exchanges->set.router;
    bool root = message->root == router_rank(router);
    struct error over;

    bool renamed = root && x == NULL && attempt_find_id(exchanges, id) == NULL;
    bool waits = root && x != NULL && x->state == EXCHANGE_WITHDRAWN && has_passed(x);

    const struct attempt *group = root ? group_restart_find_failed(exchanges, id) : NULL;
    if (group != NULL)
        over = group->failure;
    else if (x != NULL && (root ? x->state == EXCHANGE_FAILED : has_heard(x)))
        over = x->failure;
    else if ((renamed || waits) && id->boot == (uint32_t)router_boot(router))
        (void)error_set(&over, ERROR_BUSY, "this attempt was withdrawn");
    else
        return false;
    abort_answer(exchanges, port, message->exchange, id, &over);
    return true;
}

int nack_heard(struct exchanges *exchanges, unsigned port, const struct peer_nack *message,
               struct error *e)
{
    const struct torus *t = router_torus(exchanges->set.router);
    uint32_t rank = router_rank(exchanges->set.router);
    struct attempt *x = attempt_find(exchanges, message->exchange);
    struct exchange_id id;
    struct error why;
    int here;

    if (exchange_id_read(&id, message->id, t->nodes, "nack", e) != 0)
        return -1;
    if (message->root >= t->nodes)
        return error_set(e, ERROR_PROTOCOL, "nack for node %u, but the torus has only %u nodes",
                         message->root, t->nodes);
    if (x != NULL && (!exchange_id_equal(&x->id, &id) || x->root != message->root))
        x = NULL;
    here = message->root == rank ? -1
           : x != NULL           ? nack_port(x)
                                 : tree_messages_port(exchanges, message->root);
    /* A node below this one has lost its path to the root, so use another one. */
    if (here == (int)port)
        here = tree_messages_port(exchanges, message->root);
    if (here == (int)port)
        return 0; /* the sender knows of other lost links than this node */
    if (answer_nack(exchanges, port, x, &id, message))
        return 0;
    take_error(message->code, message->reason, &why);
    why.culprit = message->culprit;
    if (message->root != rank) {
        if (x != NULL &&
            !tree_messages_is_child(x, port)) /* otherwise it would seem to come from below */
            (void)error_wrap(&why, "node %u reports", torus_neighbour(t, rank, port));
        nack_send(exchanges, here, message->exchange, &id, message->root, &why,
                  message->retry_may_help);
        return 0;
    }
    if (x != NULL && attempt_is_root(x) && !state_of(x)->unheard && !state_of(x)->ended) {
        name_teller(x, port, &why);
        hear_nack(x, &why, message->retry_may_help);
    }
    return 0;
}

static bool may_hear(const struct attempt *x)
{
    return !attempt_is_root(x) && x->state != EXCHANGE_COMMITTING && x->state != EXCHANGE_COMMITTED;
}

/* The root may have decided to commit what this node has finished. The abort is then believed only if it
 * arrives from the root's direction. A true abort also arrives from there, because aborts are flooded over
 * all links. */
static bool may_come_from(const struct attempt *x, unsigned port)
{
    if (!state_of(x)->may_be_committed)
        return true;
    return x->tree.parent == (int)port || tree_messages_port(x->exchanges, x->root) == (int)port;
}

/* Whether the abort says that the job does not retry after all. */
static bool is_last_word(const struct attempt *x, const struct peer_abort *message)
{
    return x->state == EXCHANGE_WITHDRAWN && message->code != ERROR_BUSY;
}

/* Ends or changes an attempt as the root's abort says. */
static void take_abort(struct attempt *x, const struct error *why)
{
    struct job *j = x->job;

    switch (x->state) {
    case EXCHANGE_IN_DOUBT:
        x->failure = *why;
        (void)in_doubt_resolve(x->exchanges, &x->id, false);
        break;
    case EXCHANGE_WITHDRAWN:
        if (j != NULL && j->last == x && j->state == JOB_ENTERED) {
            job_end_by_abort(j, why);
        } else {
            x->failure = *why;
            attempt_end(x, EXCHANGE_FAILED);
        }
        break;
    /* This node ended the attempt by itself. From now on it reports the same error as the others. */
    case EXCHANGE_FAILED:
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

int abort_heard(struct exchanges *exchanges, unsigned port, const struct peer_abort *message,
                struct error *e)
{
    struct attempt *x = attempt_find(exchanges, message->exchange);
    uint32_t most = router_torus(exchanges->set.router)->nodes;
    struct exchange_id id;
    struct error why;

    if (exchange_id_read(&id, message->id, most, "abort", e) != 0)
        return -1;
    take_error(message->code, message->reason, &why);
    if (x == NULL || !exchange_id_equal(&x->id, &id)) {
        abort_pass_unknown(exchanges, port, &id, message);
        if (why.code != ERROR_BUSY)
            group_restart_failed(exchanges, &id, &why);
        return 0;
    }
    if (!may_hear(x) || !may_come_from(x, port) || (x->abort_heard && !is_last_word(x, message)))
        return 0;
    x->abort_heard = true;
    x->before_go = message->before_go;
    if (x->job != NULL)
        x->job->ready &= !x->before_go;
    uint32_t left = message->left < most ? message->left : most;
    if (left > 0)
        left--;
    else if (abort_is_cut(x) || x->tree.parent != (int)port)
        left = most;
    abort_pass_on(x, &why, left, (int)port);
    take_abort(x, &why);
    return 0;
}
