/* How an exchange fails, everywhere with the same words. The root alone decides. Whoever cannot go
 * on tells it, along the links of its tree (objection); the root's verdict goes down the tree behind
 * its prepare, so that every node that hears it knows the exchange.
 *
 * Where links are down the tree may be cut, and the verdict is flooded as well. It may then come to
 * nodes before the prepare does, or where that never comes: they pass it on for as many hops as
 * there are nodes, and remember its id, to pass it on once. More than can be remembered are not
 * passed on: who invents exchanges that fail must not make the others flood the torus. If a prepare
 * comes after all that, its exchange ends with the fault that this node knows, too.
 *
 * A node that was cut off ends its exchanges by itself, with what it knows. When a link to it comes
 * up it hears the verdicts that it may have missed, and says from then on what all say. */
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

static uint64_t hash(const char *id)
{
    return exchange_hash(id) | 1; /* 0: none */
}

bool verdict_is_remembered(const struct exchanges *all, const char *id)
{
    uint64_t wanted = hash(id);

    for (unsigned i = 0; i < VERDICTS_REMEMBERED; i++)
        if (all->verdict[i] == wanted)
            return true;
    return false;
}

/* Returns false if there is no room: the oldest may still be on its way. */
static bool remember(struct exchanges *all, const char *id)
{
    unsigned i = all->next_verdict;
    uint64_t now = router_now(all->set.router);

    if (all->verdict[i] != 0 && now < all->verdict_at[i] + VERDICT_TIME)
        return false;
    all->verdict[i] = hash(id);
    all->verdict_at[i] = now;
    all->next_verdict = (i + 1) % VERDICTS_REMEMBERED;
    return true;
}

static bool is_cut(const struct exchange *x)
{
    return x->fault.at != ROUTER_NEVER || x->fault.lost != 0;
}

/* Down the tree; or with `left` hops to go over all links but the one it came by (-1: none). */
static void pass_on(struct exchange *x, const struct error *e, uint32_t left, int except)
{
    Peer__Verdict message = PEER__VERDICT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = x->handle;
    message.id = x->id;
    message.code = (uint32_t)e->code;
    message.reason = (char *)(uintptr_t)e->text;
    message.left = left;
    head.kind_case = PEER__HEAD__KIND_VERDICT;
    head.verdict = &message;
    if (left > 0)
        router_flood(router_of(x), except, &head);
    else
        wave_to_children(x, &head);
}

void verdict_send(struct exchange *x, const struct error *e)
{
    x->verdict_heard = true;
    pass_on(x, e, is_cut(x) ? torus_of(x)->nodes : 0, -1);
}

/* A link has come up: what was said on it before may never have arrived. */
void verdicts_repeat(struct exchanges *all, unsigned port)
{
    for (const struct exchange *x = all->ended; x != NULL; x = x->next) {
        Peer__Verdict message = PEER__VERDICT__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        if (x->state != EXCHANGE_FAILED || !x->verdict_heard || x->failure.code == ERROR_BUSY)
            continue;
        message.exchange = x->handle;
        message.id = (char *)(uintptr_t)x->id;
        message.code = (uint32_t)x->failure.code;
        message.reason = (char *)(uintptr_t)x->failure.text;
        message.left = torus_of(x)->nodes; /* the other end may have been restarted meanwhile */
        head.kind_case = PEER__HEAD__KIND_VERDICT;
        head.verdict = &message;
        router_send(all->set.router, port, &head);
    }
}

void objection_send(struct exchanges *all, uint32_t handle, const char *id, uint32_t root,
                    const struct error *e)
{
    Peer__Objection message = PEER__OBJECTION__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = handle;
    message.id = (char *)(uintptr_t)id;
    message.root = root;
    message.code = (uint32_t)e->code;
    message.reason = (char *)(uintptr_t)e->text;
    head.kind_case = PEER__HEAD__KIND_OBJECTION;
    head.objection = &message;
    wave_towards(all, root, &head);
}

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

void verdict_here(struct exchange *x, const struct error *e)
{
    if (!may_fail(x))
        return;
    if (e->code == ERROR_BUSY && turn_may_retry(x)) {
        turn_again(x, e);
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
        verdict_here(x, &why);
    return 0;
}

/* Of an exchange that is not known here. */
static void pass_unknown(struct exchanges *all, unsigned port, const Peer__Verdict *message)
{
    uint32_t most = router_torus(all->set.router)->nodes;
    Peer__Verdict onward = *message;
    Peer__Head head = PEER__HEAD__INIT;
    char id[EXCHANGE_ID_SIZE], reason[sizeof((struct error *)0)->text];

    if (message->left == 0 || strlen(message->id) >= sizeof id ||
        verdict_is_remembered(all, message->id) || !remember(all, message->id))
        return;
    onward.id = text_printable(id, sizeof id, message->id);
    onward.reason = text_printable(reason, sizeof reason, message->reason);
    onward.left = message->left - 1 < most ? message->left - 1 : most;
    head.kind_case = PEER__HEAD__KIND_VERDICT;
    head.verdict = &onward;
    router_flood(all->set.router, (int)port, &head);
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
        pass_unknown(all, port, message);
        return 0;
    }
    if (!may_hear(x) || x->verdict_heard)
        return 0;
    x->verdict_heard = true;
    take_error(message->code, message->reason, &x->failure);
    uint32_t left = message->left < most ? message->left : most;
    if (left > 0)
        left--;
    else if (is_cut(x) || x->tree.parent != (int)port)
        left = most;
    pass_on(x, &x->failure, left, (int)port);
    if (x->state == EXCHANGE_IN_DOUBT)
        (void)doubt_settle(all, x->id, false);
    else if (x->state != EXCHANGE_FAILED)
        exchange_enter(x, EXCHANGE_FAILED);
    return 0;
}
