/* A group that is open goes on around links that go down: its root takes it back everywhere, as it does
 * with an exchange (retry.c), and prepares it anew, under a new id that names the first one
 * (Prepare.resumes). Between the two attempts a node is ENTERED; if the root gives up, it says so by the
 * first id, as the last one that a node knows may be any. The session keeps what the programs have called (session.h).
 *
 * A group that has been shrunk goes on as the members that it has: without the nodes that it has left out,
 * also when these are up again, and without their links (around_left_out()). Its root stays the same, whichever
 * node would be the first to prepare another one.
 *
 * Who cannot go on, because its program has died meanwhile, say, takes part in the next attempt, and
 * objects: all hear of it by the id that all know. Who cannot go on without these links, or has lost the
 * group, refuses it (ERROR_REFUSED): another attempt would not help, as it might after ERROR_LINK. */
#include <string.h>

#include "daemon/exchange/internal.h"

/* A verdict that came while this node was cut off may have gone past it: longer than nodes remember that they have
 * passed it on. */
#define ASK_TIME (10 * SECONDS)

bool standing_is_one(const struct exchange *x)
{
    return x->spec.operation == OPERATION_GROUP &&
           (x->resumes[0] != '\0' || x->rounds.first_went != 0);
}

bool standing_is_suspended(const struct exchange *x)
{
    return x->state == EXCHANGE_ENTERED && x->resumes[0] != '\0';
}

void standing_name(struct exchange *x)
{
    if (standing_is_one(x) && x->resumes[0] == '\0')
        memcpy(x->resumes, x->id, sizeof x->resumes);
}

bool standing_suspend(struct exchange *x)
{
    bool own_fault = x->state == EXCHANGE_FAILING && !fail_is_for_now(&x->failure);

    if (!standing_is_one(x) || exchange_is_root(x) || exchange_has_ended(x->state))
        return false;
    if (x->state == EXCHANGE_ENTERED)
        return true;
    standing_name(x);
    if (!own_fault)
        x->failure.code = ERROR_NONE;
    x->verdict_heard = x->taken_back = x->before_go = false;
    x->rounds = (struct rounds){.count = 1};
    report_free(&x->report); /* programs may have left by then */
    x->fault = UNSEEN_FAULT;
    x->timeout_ns = SPEC_LONGEST_TIMEOUT;
    x->deadline = router_now(router_of(x)) + x->timeout_ns;
    x->turn.asks_at = router_now(router_of(x)) + ASK_TIME;
    exchange_enter(x, EXCHANGE_ENTERED);
    return true;
}

uint64_t standing_asks_at(const struct exchange *x)
{
    return standing_is_suspended(x) ? x->turn.asks_at : ROUTER_NEVER;
}

void standing_ask(struct exchange *x)
{
    struct error e;

    (void)error_set(&e, ERROR_LINK, "node %u waits for the group to go on", rank_of(x));
    objection_send(x->all, wave_port(x->all, x->root), x->handle, resume_name(x), x->root, &e,
                   false);
    x->turn.asks_at = router_now(router_of(x)) + ASK_TIME;
}

const struct exchange *standing_find_failed(const struct exchanges *all, const char *first)
{
    const struct exchange *x = all->ended;

    while (x != NULL && (!standing_is_one(x) || !exchange_is_root(x) ||
                         x->state != EXCHANGE_FAILED || strcmp(resume_name(x), first) != 0))
        x = x->next;
    return x;
}

/* The one of this first id that is not over here, whatever attempt it is. */
static struct exchange *find(struct exchanges *all, const char *first)
{
    struct exchange *x = all->active;

    while (x != NULL &&
           (!standing_is_one(x) || exchange_is_root(x) || strcmp(resume_name(x), first) != 0))
        x = x->next;
    return x;
}

void standing_give_up(struct exchange *x, const struct error *why)
{
    if (x->failure.code == ERROR_NONE)
        x->failure = *why;
}

/* Why this node does not have it. */
static void say_why(const struct exchanges *all, const char *first, struct error *e)
{
    uint32_t rank = router_rank(all->set.router);
    const struct exchange *x = all->ended;

    while (x != NULL &&
           (x->spec.operation != OPERATION_GROUP || strcmp(resume_name(x), first) != 0))
        x = x->next;
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
static struct exchange *find_early(struct exchanges *all, const char *first)
{
    const uint32_t before_go =
        1u << EXCHANGE_PREPARING | 1u << EXCHANGE_READY | 1u << EXCHANGE_FAILING;
    struct exchange *x = all->active;

    for (; x != NULL; x = x->next) {
        if (x->spec.operation != OPERATION_GROUP || x->resumes[0] != '\0' ||
            x->client_state != CLIENT_WAITING)
            continue;
        if (x->state == EXCHANGE_ENTERED ? strcmp(x->entered.former, first) == 0
                                         : (before_go & 1u << x->state) != 0 &&
                                               !exchange_is_root(x) && strcmp(x->id, first) == 0)
            return x;
    }
    return NULL;
}

void standing_failed(struct exchanges *all, const char *first, const struct error *why)
{
    struct exchange *x = find(all, first);

    if (x == NULL)
        x = find_early(all, first);
    if (x == NULL)
        return;
    x->failure = *why;
    x->verdict_heard = true;
    exchange_enter(x, EXCHANGE_FAILED);
}

struct exchange *standing_find(struct exchanges *all, const char *first, const char *id,
                               struct error *e)
{
    struct exchange *x = find(all, first);

    if (x == NULL)
        x = find_early(all, first);
    if (x == NULL) {
        say_why(all, first, e);
        return NULL;
    }
    if (!exchange_is_before(id, x->id))
        return x;
    (void)error_set(e, ERROR_BUSY, "the group has begun anew as %s", x->id);
    return NULL;
}
