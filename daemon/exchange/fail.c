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
    if (x->spec.repeat > 1 && x->state == EXCHANGE_RUNNING)
        (void)error_wrap(&x->failure, "repetition %u of %u", x->rounds.repetition + 1,
                         x->spec.repeat);
}

/* The child port of this exchange's tree that a node is below, -1 for this node. */
static int branch_of(const struct exchange *x, const struct torus *t, uint32_t node)
{
    uint32_t here = rank_of(x);
    struct tree_node at;
    int port = -1;

    while (node != here) {
        tree_node(t, x->root, node, &at);
        node = torus_neighbour(t, node, (unsigned)at.parent);
        port = (int)torus_port_opposite((unsigned)at.parent);
    }
    return port;
}

/* A barrier that not all have come to: which nodes the root has not heard of. A child is heard when
 * all below it have come, so these are whole branches. */
static void name_missing(struct exchange *x)
{
    const struct torus *t = torus_of(x);
    uint32_t nodes = 0;
    char list[128];
    size_t used = 0;

    if (x->spec.operation != OPERATION_BARRIER || x->failure.code != ERROR_TIMEOUT)
        return;
    if (x->state == EXCHANGE_ENTERED)
        (void)error_wrap(&x->failure, "node %u has not entered it", BARRIER_ROOT);
    if (x->state != EXCHANGE_PREPARING)
        return;
    for (uint32_t node = 0; node < t->nodes; node++) {
        int port = branch_of(x, t, node);
        if (port < 0 || (x->owed & 1u << port) == 0)
            continue;
        if (used < sizeof list - 16) /* room for a rank, and for the end */
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", used > 0 ? ", " : "",
                                     node);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, sizeof list - used, " ...");
        nodes++;
    }
    if (nodes == 1)
        (void)error_wrap(&x->failure, "node %s has not entered it", list);
    else if (nodes > 1)
        (void)error_wrap(&x->failure, "not all of nodes %s have entered it", list);
}

/* Nobody else knows of it, or it is too late to fail. */
static bool is_known_elsewhere(const struct exchange *x)
{
    return x->state != EXCHANGE_WAITING && x->state != EXCHANGE_ENTERED;
}

static bool may_fail(const struct exchange *x)
{
    return !exchange_has_ended(x->state) && x->state != EXCHANGE_FAILING &&
           x->state != EXCHANGE_DECIDING && x->state != EXCHANGE_COMMITTING;
}

void exchange_fail(struct exchange *x, const struct error *e)
{
    if (!may_fail(x))
        return;
    if (e->code == ERROR_BUSY && retry_may(x)) {
        retry_later(x, e);
        return;
    }
    x->failure = *e;
    if (exchange_is_root(x)) {
        name_repetition(x);
        name_missing(x);
        if (is_known_elsewhere(x))
            verdict_send(x, &x->failure);
        exchange_enter(x, EXCHANGE_FAILED);
        return;
    }
    if (e->code == ERROR_BUSY)
        log_debug("exchange %s: %s", x->id, e->text);
    else
        log_warning("exchange %s: %s", x->id, e->text);
    objection_send(x->all, x->handle, x->id, x->root, e);
    x->deadline = router_now(router_of(x)) + VERDICT_TIME;
    exchange_enter(x, EXCHANGE_FAILING);
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
            objection_send(all, x->handle, x->id, x->root, &x->failure);
}

int objection_heard(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e)
{
    const Peer__Objection *message = head->objection;
    const struct torus *t = router_torus(all->set.router);
    uint32_t rank = router_rank(all->set.router);
    struct exchange *x;
    struct tree_node here;
    struct error why;

    if (message->root >= t->nodes)
        return error_set(e, ERROR_PROTOCOL, "objection for node %u of %u", message->root, t->nodes);
    tree_node(t, message->root, rank, &here);
    if (here.parent == (int)port)
        return error_set(e, ERROR_PROTOCOL, "objection for node %u from the wrong side",
                         message->root);
    take_error(message->code, message->reason, &why);
    if (message->root != rank) {
        char id[EXCHANGE_ID_SIZE];
        objection_send(all, message->exchange, text_printable(id, sizeof id, message->id),
                       message->root, &why);
        return 0;
    }
    x = exchange_find(all, message->exchange);
    /* While it waits, the attempt that this is about has been taken back already. */
    if (x != NULL && strcmp(x->id, message->id) == 0 && exchange_is_root(x) &&
        is_known_elsewhere(x))
        exchange_fail(x, &why);
    return 0;
}

static bool may_hear(const struct exchange *x)
{
    return !exchange_is_root(x) && x->state != EXCHANGE_COMMITTING &&
           x->state != EXCHANGE_COMMITTED;
}

int verdict_heard(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e)
{
    const Peer__Verdict *message = head->verdict;
    struct exchange *x = exchange_find(all, message->exchange);
    uint32_t most = router_torus(all->set.router)->nodes;

    (void)e;
    if (x == NULL || strcmp(x->id, message->id) != 0) {
        verdict_pass_unknown(all, port, message);
        return 0;
    }
    if (!may_hear(x) || x->verdict_heard)
        return 0;
    x->verdict_heard = true;
    take_error(message->code, message->reason, &x->failure);
    uint32_t left = message->left < most ? message->left : most;
    if (left > 0)
        left--;
    else if (verdict_is_cut(x) || x->tree.parent != (int)port)
        left = most;
    verdict_pass_on(x, &x->failure, left, (int)port);
    if (x->state == EXCHANGE_IN_DOUBT)
        (void)doubt_settle(all, x->id, false);
    else if (x->state != EXCHANGE_FAILED)
        exchange_enter(x, EXCHANGE_FAILED);
    return 0;
}
