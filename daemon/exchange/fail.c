/* An exchange fails: the root decides for all, every other node tells the root and waits for its
 * verdict (verdict.c). What both hear of each other. */
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

/* Which of several repetitions it is that fails: the root's word, so that all say the same. */
static void name_repetition(struct exchange *x)
{
    uint32_t repeat = x->turn.repeated + x->spec.repeat;

    if (repeat > 1 && x->state == EXCHANGE_RUNNING)
        (void)error_wrap(&x->failure, "repetition %u of %u",
                         x->turn.repeated + x->rounds.repetition + 1, repeat);
}

/* A child is heard when all below it have come, so these are whole branches. */
uint32_t exchange_missing(const struct exchange *x, char *list, size_t size)
{
    const struct torus *t = torus_of(x);
    uint32_t nodes = 0;
    size_t used = 0;

    list[0] = '\0';
    if (!spec_is_entered(&x->spec))
        return 0;
    if (x->state == EXCHANGE_ENTERED) {
        uint32_t root = barrier_root(x->all, &x->spec);
        if (root == TORUS_NO_NODE)
            return 0;
        return (void)snprintf(list, size, "%u", root), 1;
    }
    for (uint32_t node = 0; x->state == EXCHANGE_PREPARING && node < t->nodes; node++) {
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

/* A barrier that not all have come to: which nodes the root has not heard of. */
static void name_missing(struct exchange *x)
{
    char list[128];
    uint32_t nodes;

    if (x->failure.code != ERROR_TIMEOUT)
        return;
    nodes = exchange_missing(x, list, sizeof list);
    if (nodes == 1)
        (void)error_wrap(&x->failure, "node %s has not entered it", list);
    else if (nodes > 1)
        (void)error_wrap(&x->failure, "not all of nodes %s have entered it", list);
}

bool fail_is_for_now(const struct error *e)
{
    return e->code == ERROR_LINK || e->code == ERROR_BUSY || e->code == ERROR_DAMAGED;
}

static bool may_fail(const struct exchange *x)
{
    return !exchange_has_ended(x->state) && x->state != EXCHANGE_FAILING &&
           x->state != EXCHANGE_DECIDING && x->state != EXCHANGE_COMMITTING;
}

/* The root has not given its verdict on a link, say, that the exchange may go around. What the program here has done
 * meanwhile it does not: the root hears of that, too, and if it has taken this attempt back, in the next one. */
static bool outweighs(const struct exchange *x, const struct error *e)
{
    return x->state == EXCHANGE_FAILING && spec_is_entered(&x->spec) &&
           fail_is_for_now(&x->failure) && !fail_is_for_now(e);
}

/* By its tree, or where that is cut by any way. */
static int towards_root(const struct exchange *x)
{
    bool cut = x->tree.parent >= 0 && (x->fault.lost & 1u << x->tree.parent) != 0;

    return cut ? wave_port(x->all, x->root) : x->tree.parent;
}

static void fail(struct exchange *x, const struct error *e, bool again)
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
    if (standing_is_suspended(x)) {
        standing_give_up(x, e);
        return;
    }
    x->failure = *e;
    if (exchange_is_root(x)) {
        if (e->code == ERROR_DAMAGED && x->turn.damages > 0)
            (void)error_wrap(&x->failure, "also after it had begun anew");
        name_repetition(x);
        name_missing(x);
        /* Those who have heard that it begins anew hear why it does not. */
        if (exchange_has_begun(x) || (x->turn.reroutes + x->turn.damages > 0 && verdict_is_cut(x)))
            verdict_send(x, &x->failure);
        verdict_send_former(x, &x->failure);
        if (standing_is_one(x))
            x->verdict_heard = true; /* who was cut off hears it later */
        exchange_enter(x, EXCHANGE_FAILED);
        return;
    }
    if (e->code == ERROR_BUSY)
        log_debug("exchange %s: %s", x->id, e->text);
    else
        log_warning("exchange %s: %s", x->id, e->text);
    x->damaged = again;
    objection_send(x->all, towards_root(x), x->handle, x->id, x->root, e, again);
    x->deadline = router_now(router_of(x)) + VERDICT_TIME;
    if (x->state != EXCHANGE_FAILING)
        exchange_enter(x, EXCHANGE_FAILING);
}

void exchange_fail(struct exchange *x, const struct error *e)
{
    fail(x, e, false);
}

void exchange_damaged(struct exchange *x, const struct error *e)
{
    fail(x, e, true);
}

static void take_error(uint32_t code, const char *reason, struct error *e)
{
    e->code = code > ERROR_NONE && code <= ERROR_BUSY ? (enum error_code)code : ERROR_IO;
    text_printable(e->text, sizeof e->text, reason);
}

/* The link to the parent is up again: what was said on the one before may never have arrived. */
void objections_repeat(struct exchanges *all, unsigned port)
{
    for (struct exchange *x = all->active; x != NULL; x = x->next)
        if (x->state == EXCHANGE_FAILING && x->tree.parent == (int)port)
            objection_send(all, (int)port, x->handle, x->id, x->root, &x->failure, x->damaged);
}

/* Whether a text names a node that is behind this port of the exchange's tree: "node 3", "link 3:+0". */
static bool names_branch(const struct exchange *x, unsigned port, const char *text)
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
static void name_teller(const struct exchange *x, unsigned port, struct error *e)
{
    if (!names_branch(x, port, e->text))
        (void)error_wrap(e, "node %u says", torus_neighbour(torus_of(x), rank_of(x), port));
}

/* The root's. A link that it may go around is a matter for failure.c, like those that it has heard of by
 * itself. */
static void hear_objection(struct exchange *x, const struct error *why, bool again)
{
    if (why->code == ERROR_REFUSED && standing_is_one(x)) {
        struct error lost = *why;
        lost.code = ERROR_LINK; /* which it has failed for */
        exchange_fail(x, &lost);
    } else if (why->code != ERROR_LINK || !retry_goes_around(x)) {
        fail(x, why, again && why->code == ERROR_DAMAGED);
    } else if (x->fault.at == ROUTER_NEVER) {
        x->fault.at = router_now(router_of(x));
        x->fault.e = *why;
    }
}

/* What was said of it may have been lost with a link that was not known to be down. Who has heard the
 * verdict passes it on; the root may have given its exchange another name by now (then `x` is NULL). Returns
 * whether it is over. */
static bool answer(struct exchanges *all, unsigned port, const struct exchange *x,
                   const Peer__Objection *message)
{
    struct router *router = all->set.router;
    bool root = message->root == router_rank(router);
    struct error over;
    unsigned boot;

    bool renamed = root && x == NULL && exchange_find_id(all, message->id) == NULL;
    bool waits = root && x != NULL && x->state == EXCHANGE_WAITING &&
                 router_now(router) >= x->turn.back_at + SETTLE_TIME;

    const struct exchange *group = root ? standing_find_failed(all, message->id) : NULL;
    if (group != NULL)
        over = group->failure;
    else if (x != NULL && x->state == EXCHANGE_FAILED && (root || x->verdict_heard))
        over = x->failure;
    else if ((renamed || waits) && sscanf(message->id, "%*u-%x-", &boot) == 1 &&
             boot == (uint32_t)router_boot(router))
        (void)error_set(&over, ERROR_BUSY, "this attempt has been taken back");
    else
        return false;
    verdict_answer(all, port, message, &over);
    return true;
}

int objection_heard(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e)
{
    const Peer__Objection *message = head->objection;
    const struct torus *t = router_torus(all->set.router);
    uint32_t rank = router_rank(all->set.router);
    struct exchange *x = exchange_find(all, message->exchange);
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
    if (x != NULL && exchange_is_root(x) && exchange_has_begun(x) &&
        !exchange_has_ended(x->state)) {
        name_teller(x, port, &why);
        hear_objection(x, &why, message->again);
    }
    return 0;
}

static bool may_hear(const struct exchange *x)
{
    return !exchange_is_root(x) && x->state != EXCHANGE_COMMITTING &&
           x->state != EXCHANGE_COMMITTED;
}

/* The root may have decided to commit what this node has finished. Then its verdict is believed only from
 * its direction; it is flooded over all links, so it comes from there as well. */
static bool may_come_from(const struct exchange *x, unsigned port)
{
    if (x->state != EXCHANGE_DONE && x->state != EXCHANGE_IN_DOUBT)
        return true;
    return x->tree.parent == (int)port || wave_port(x->all, x->root) == (int)port;
}

/* It was to begin anew, and does not. */
static bool is_last_word(const struct exchange *x, const Peer__Verdict *message)
{
    return x->state == EXCHANGE_FAILED && x->taken_back && message->code != (uint32_t)ERROR_BUSY;
}

/* What is taken back is no failure of a group that is open: it goes on, or its programs have been told why it
 * does not. Nor of a barrier that has ended here, of which its client is about to hear. */
static bool bears_taking_back(const struct exchange *x)
{
    if (standing_is_one(x))
        return x->state != EXCHANGE_FINISHED;
    return x->state == EXCHANGE_FAILED && x->client_state == CLIENT_WAITING;
}

int verdict_heard(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e)
{
    const Peer__Verdict *message = head->verdict;
    struct exchange *x = exchange_find(all, message->exchange);
    uint32_t most = router_torus(all->set.router)->nodes;
    struct error why;

    (void)e;
    if (x == NULL || strcmp(x->id, message->id) != 0) {
        verdict_pass_unknown(all, port, message);
        take_error(message->code, message->reason, &why);
        if (why.code != ERROR_BUSY)
            standing_failed(all, message->id, &why);
        return 0;
    }
    if (standing_is_suspended(x) && message->code == (uint32_t)ERROR_BUSY)
        return 0; /* heard once more */
    if (!may_hear(x) || !may_come_from(x, port) || (x->verdict_heard && !is_last_word(x, message)))
        return 0;
    x->verdict_heard = true;
    x->before_go = message->before_go;
    x->entered.ready &= !x->before_go;
    take_error(message->code, message->reason, &why);
    x->taken_back = why.code == ERROR_BUSY;
    if (!x->taken_back || !bears_taking_back(x))
        x->failure = why;
    uint32_t left = message->left < most ? message->left : most;
    if (left > 0)
        left--;
    else if (verdict_is_cut(x) || x->tree.parent != (int)port)
        left = most;
    verdict_pass_on(x, &why, left, (int)port);
    if (x->state == EXCHANGE_IN_DOUBT)
        (void)doubt_settle(all, x->id, false);
    else if (x->state == EXCHANGE_FAILED && !x->taken_back) {
        log_warning("exchange %s failed: %s", x->id, x->failure.text);
        resume_drop(x);
    } else if (x->state != EXCHANGE_FAILED && (why.code != ERROR_BUSY || !barrier_take_back(x)))
        exchange_enter(x, EXCHANGE_FAILED);
    return 0;
}
