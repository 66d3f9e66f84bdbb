/* An exchange fails: the root decides for all, every other node tells the root and waits for its
 * verdict (verdict.c). What both hear of each other. */
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

/* Which of several repetitions it is that fails: the root's word, so that all say the same. */
static void name_repetition(struct attempt *x)
{
    uint32_t kept = x->job->repetitions.kept, repeat = kept + x->spec.repeat;

    if (repeat > 1 && state_of(x)->moves)
        (void)error_wrap(&x->failure, "repetition %u of %u", kept + x->rounds.repetition + 1,
                         repeat);
}

/* A child is heard when all below it have come, so these are whole branches. */
static uint32_t list_owed(const struct attempt *x, char *list, size_t size)
{
    uint32_t nodes = 0;
    size_t used = 0;

    for (uint32_t node = 0; node < torus_of(x)->nodes; node++) {
        int port = around_branch(x, node);
        if (port < 0 || (x->owed & 1u << port) == 0)
            continue;
        if (used < size - 16) /* room for a rank, and for the end */
            used += (size_t)snprintf(list + used, size - used, "%s%u", used > 0 ? ", " : "", node);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, size - used, " ...");
        nodes++;
    }
    return nodes;
}

uint32_t exchange_missing(const struct job *j, char *list, size_t size)
{
    list[0] = '\0';
    if (!kind_of_spec(&j->spec)->is_entered)
        return 0;
    if (j->state == JOB_ENTERED) {
        uint32_t root = barrier_root(j->all, &j->spec);
        if (root == TORUS_NO_NODE)
            return 0;
        return (void)snprintf(list, size, "%u", root), 1;
    }
    if (!job_is_under_way(j) || j->attempt->state != EXCHANGE_PREPARING)
        return 0;
    return list_owed(j->attempt, list, size);
}

/* A barrier that not all have come to: which nodes the root has not heard of. */
static void name_missing(const struct job *j, struct error *e)
{
    char list[128];
    uint32_t nodes;

    if (e->code != ERROR_TIMEOUT)
        return;
    nodes = exchange_missing(j, list, sizeof list);
    if (nodes == 1)
        (void)error_wrap(e, "node %s has not entered it", list);
    else if (nodes > 1)
        (void)error_wrap(e, "not all of nodes %s have entered it", list);
}

static bool may_fail(const struct attempt *x)
{
    return !state_of(x)->over && !state_of(x)->decided;
}

/* The root has not given its verdict on a link, say, that the exchange may go around. What the program here has done
 * meanwhile it does not: the root hears of that, too, and if it has taken this attempt back, in the next one. */
static bool outweighs(const struct attempt *x, const struct error *e)
{
    return state_of(x)->awaits_verdict && kind_of(x)->is_entered && fail_is_for_now(&x->failure) &&
           !fail_is_for_now(e);
}

/* By its tree, or where that is cut by any way. */
static int towards_root(const struct attempt *x)
{
    bool cut = x->tree.parent >= 0 && (x->fault.lost & 1u << x->tree.parent) != 0;

    return cut ? wave_port(x->all, x->root) : x->tree.parent;
}

/* The root decides for all. */
static void fail_everywhere(struct attempt *x, const struct error *e)
{
    struct job *j = x->job;

    x->failure = *e;
    if (e->code == ERROR_DAMAGED && j->damages > 0)
        (void)error_wrap(&x->failure, "also after it had begun anew");
    name_repetition(x);
    name_missing(j, &x->failure);
    verdict_send(x, &x->failure);
    verdict_send_former(j, &x->failure);
    attempt_end(x, EXCHANGE_FAILED);
}

static void fail(struct attempt *x, const struct error *e, bool again)
{
    if (!may_fail(x) && !outweighs(x, e))
        return;
    if (e->code == ERROR_BUSY && retry_may(x)) {
        retry_later(x, e);
        return;
    }
    if (again && retry_mends(x)) {
        retry_damaged(x, e);
        return;
    }
    if (attempt_is_root(x)) {
        fail_everywhere(x, e);
        return;
    }
    x->failure = *e;
    if (e->code == ERROR_BUSY)
        log_debug("exchange %s: %s", x->id, e->text);
    else
        log_warning("exchange %s: %s", x->id, e->text);
    x->damaged = again;
    objection_send(x->all, towards_root(x), x->handle, x->id, x->root, e, again);
    x->deadline = router_now(router_of(x)) + VERDICT_TIME;
    if (!state_of(x)->awaits_verdict)
        attempt_enter(x, EXCHANGE_FAILING);
}

/* Of one that waits for its next attempt: those who have heard that there will be one hear why there is none. */
static void fail_waiting(struct job *j, const struct error *e)
{
    struct attempt *last = j->last;
    struct error why = *e;

    if (job_awaits_restart(j)) { /* its root decides; it hears so in the next one */
        if (j->failure.code == ERROR_NONE)
            j->failure = *e;
        return;
    }
    if (e->code == ERROR_DAMAGED && j->damages > 0)
        (void)error_wrap(&why, "also after it had begun anew");
    name_missing(j, &why);
    if (last != NULL && attempt_is_root(last)) {
        if (j->reroutes + j->damages > 0 && j->fault.at != ROUTER_NEVER)
            verdict_flood(last, &why);
        if (job_has_been_open(j))
            last->verdict_heard = true; /* who was cut off hears it later */
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
    fail(x, e, false);
}

void attempt_damaged(struct attempt *x, const struct error *e)
{
    fail(x, e, true);
}

static void take_error(enum error_code code, const char *reason, struct error *e)
{
    e->code = code;
    text_printable(e->text, sizeof e->text, reason);
}

/* The link to the parent is up again: what was said on the one before may never have arrived. */
void objections_repeat(struct exchanges *all, unsigned port)
{
    for (struct attempt *x = all->active; x != NULL; x = x->next)
        if (state_of(x)->awaits_verdict && x->tree.parent == (int)port)
            objection_send(all, (int)port, x->handle, x->id, x->root, &x->failure, x->damaged);
}

/* Whether a text names a node that is behind this port of the exchange's tree: "node 3", "link 3:+0". */
static bool names_branch(const struct attempt *x, unsigned port, const char *text)
{
    static const char *const words[] = {"node ", "nodes ", "link "};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = strstr(text, words[i]); at != NULL; at = strstr(at + 1, words[i])) {
            unsigned node;
            if (sscanf(at + strlen(words[i]), "%u", &node) == 1 && node < torus_of(x)->nodes &&
                around_branch(x, node) == (int)port)
                return true;
        }
    return false;
}

/* An objection comes from a node behind the port; what it says of others only, the neighbour there says. */
static void name_teller(const struct attempt *x, unsigned port, struct error *e)
{
    if (!names_branch(x, port, e->text))
        (void)error_wrap(e, "node %u says", torus_neighbour(torus_of(x), rank_of(x), port));
}

/* The root's. A link that it may go around is a matter for failure.c, like those that it has heard of by
 * itself. */
static void hear_objection(struct attempt *x, const struct error *why, bool again)
{
    if (why->code == ERROR_REFUSED && attempt_is_open_group(x)) {
        struct error lost = *why;
        lost.code = ERROR_LINK; /* which it has failed for */
        attempt_fail(x, &lost);
    } else if (why->code != ERROR_LINK || !retry_goes_around(x)) {
        fail(x, why, again && why->code == ERROR_DAMAGED);
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
           router_now(router_of(x)) >= j->back_at + SETTLE_TIME;
}

/* Not the root: it has told this node that the attempt is over. Of a group that goes on only the root knows what
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
                   const struct peer_objection *message)
{
    struct router *router = all->set.router;
    bool root = message->root == router_rank(router);
    struct error over;
    unsigned boot;

    bool renamed = root && x == NULL && attempt_find_id(all, message->id) == NULL;
    bool waits = root && x != NULL && x->state == EXCHANGE_WITHDRAWN && has_passed(x);

    const struct attempt *group = root ? standing_find_failed(all, message->id) : NULL;
    if (group != NULL)
        over = group->failure;
    else if (x != NULL && (root ? x->state == EXCHANGE_FAILED : has_heard(x)))
        over = x->failure;
    else if ((renamed || waits) && sscanf(message->id, "%*u-%x-", &boot) == 1 &&
             boot == (uint32_t)router_boot(router))
        (void)error_set(&over, ERROR_BUSY, "this attempt has been taken back");
    else
        return false;
    verdict_answer(all, port, message, &over);
    return true;
}

int objection_heard(struct exchanges *all, unsigned port, const struct peer_objection *message,
                    struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    uint32_t rank = router_rank(all->set.router);
    struct attempt *x = attempt_find(all, message->exchange);
    struct error why;
    int here;

    if (message->root >= t->nodes)
        return error_set(e, ERROR_PROTOCOL, "objection for node %u of %u", message->root, t->nodes);
    if (x != NULL && (strcmp(x->id, message->id) != 0 || x->root != message->root))
        x = NULL;
    here = message->root == rank ? -1 : x != NULL ? towards_root(x) : wave_port(all, message->root);
    if (here == (int)port) /* who is below this node has no way to it any more: another one */
        here = wave_port(all, message->root);
    if (here == (int)port)
        return 0; /* its sender knows of other links that are down than this node */
    if (answer(all, port, x, message))
        return 0;
    take_error(message->code, message->reason, &why);
    if (message->root != rank) {
        char id[EXCHANGE_ID_SIZE];
        if (x != NULL &&
            !wave_is_child(x, port)) /* the root takes it for that of a node behind this one */
            (void)error_wrap(&why, "node %u says", torus_neighbour(t, rank, port));
        objection_send(all, here, message->exchange, text_printable(id, sizeof id, message->id),
                       message->root, &why, message->again);
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
    return x->tree.parent == (int)port || wave_port(x->all, x->root) == (int)port;
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
        (void)doubt_settle(x->all, x->id, false);
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
            log_warning("exchange %s failed: %s", x->id, x->failure.text);
            resume_drop(x);
        }
        break;
    default:
        if (why->code == ERROR_BUSY) {
            attempt_withdraw(x, why);
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
    struct error why;

    (void)e;
    take_error(message->code, message->reason, &why);
    if (x == NULL || strcmp(x->id, message->id) != 0) {
        verdict_pass_unknown(all, port, message);
        if (why.code != ERROR_BUSY)
            standing_failed(all, message->id, &why);
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
