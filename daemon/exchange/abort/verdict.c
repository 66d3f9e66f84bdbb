/* How an exchange fails, everywhere with the same words. The root alone decides. Whoever cannot go
 * on tells it, along the links of its tree (objection); the root's verdict goes down the tree behind
 * its prepare, so that every node that hears it knows the exchange.
 *
 * Where links are down the tree may be cut, and the verdict is flooded as well. It may then come to
 * nodes before the prepare does, or where that never comes: they pass it on for as many hops as
 * there are nodes, and remember its id, to pass it on once. More than can be remembered are not
 * passed on: who invents exchanges that fail must not make the others flood the torus. A prepare that comes
 * after its verdict is answered as busy: if the verdict was invented, for an id that was to come, the root
 * retries under another one. Nor is it remembered for long. If a prepare comes after all that, its
 * exchange ends with the fault that this node knows, too.
 *
 * A node that was cut off ends its exchanges by itself, with what it knows. When a link to it comes
 * up it hears the verdicts that it may have missed, and says from then on what all say. */
#include "daemon/exchange/abort/verdict.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/record/id.h"
#include "daemon/exchange/record/predicates.h"
#include "daemon/exchange/record/times.h"
#include "daemon/exchange/record/tree_messages.h"
#include "proto/text.h"

#define REMEMBERED_TIME                                                                            \
    (2 * VERDICT_TIME) /* longer than the prepare of such an exchange is on its way */

/* Of a job that retries there may be a last word, too. */
static uint64_t hash(const struct exchange_id *id, bool last)
{
    return (exchange_id_hash(id) << 1 | last) << 1 | 1; /* 0: none */
}

static bool knows(const struct exchanges *all, uint64_t wanted)
{
    uint64_t now = router_now(all->set.router);

    for (unsigned i = 0; i < VERDICTS_REMEMBERED; i++)
        if (all->verdict[i] == wanted && now < all->verdict_at[i] + REMEMBERED_TIME)
            return true;
    return false;
}

bool verdict_is_remembered(const struct exchanges *all, const struct exchange_id *id)
{
    return knows(all, hash(id, false)) || knows(all, hash(id, true));
}

/* Returns false if there is no room: the oldest may still be on its way. */
static bool remember(struct exchanges *all, uint64_t verdict)
{
    unsigned i = all->next_verdict;
    uint64_t now = router_now(all->set.router);

    if (all->verdict[i] != 0 && now < all->verdict_at[i] + VERDICT_TIME)
        return false;
    all->verdict[i] = verdict;
    all->verdict_at[i] = now;
    all->next_verdict = (i + 1) % VERDICTS_REMEMBERED;
    return true;
}

bool verdict_is_cut(const struct attempt *x)
{
    return x->fault.at != ROUTER_NEVER || x->fault.lost != 0;
}

/* About an exchange by this handle and id; it refers to the texts. `before_go`: as the root has said. */
static struct peer_message about(uint32_t handle, const struct exchange_id *id,
                                 const struct error *e, uint32_t left, bool before_go)
{
    return (struct peer_message){.kind = PEER_VERDICT,
                                 .verdict = {.exchange = handle,
                                             .id = id->text,
                                             .code = e->code,
                                             .reason = e->text,
                                             .left = left,
                                             .before_go = before_go}};
}

/* Down the tree; or with `left` hops to go over all links but the one it came by (-1: none). */
void verdict_pass_on(struct attempt *x, const struct error *e, uint32_t left, int except)
{
    const struct peer_message message = about(x->handle, &x->id, e, left, x->before_go);

    if (left > 0)
        router_flood(router_of(x), except, &message);
    else
        tree_messages_to_children(x, &message);
}

void verdict_send(struct attempt *x, const struct error *e)
{
    x->verdict_heard = true;
    x->before_go = x->rounds.first_went == 0 && exchange_id_is_none(&x->resumes);
    verdict_pass_on(x, e, verdict_is_cut(x) ? torus_of(x)->nodes : 0, -1);
}

void verdict_flood(struct attempt *x, const struct error *e)
{
    x->verdict_heard = true;
    verdict_pass_on(x, e, torus_of(x)->nodes, -1);
}

void verdict_send_former(const struct job *j, const struct error *e)
{
    struct router *router = j->all->set.router;
    bool open = job_has_been_open(j);
    const struct exchange_id *former = open ? &j->resumes : &j->former.id;
    if (exchange_id_is_none(former) ||
        (exchange_id_equal(former, &j->name.id) && job_is_under_way(j)))
        return;
    const struct peer_message message =
        about(j->former.handle, former, e, router_torus(router)->nodes, false);
    router_flood(router, -1, &message);
}

void verdict_answer(struct exchanges *all, unsigned port, uint32_t handle,
                    const struct exchange_id *id, const struct error *e)
{
    const struct peer_message message =
        about(handle, id, e, router_torus(all->set.router)->nodes, false);

    router_send(all->set.router, port, &message);
}

/* A link has come up: what was said on it before may never have arrived. */
void verdicts_repeat(struct exchanges *all, unsigned port)
{
    for (const struct attempt *x = all->ended; x != NULL; x = x->next) {
        if (x->state != EXCHANGE_FAILED || !x->verdict_heard || x->failure.code == ERROR_BUSY)
            continue;
        /* All hops, as the other end may have been restarted meanwhile. */
        const struct peer_message message =
            about(x->handle, kind_of(x)->has_session ? attempt_first_id(x) : &x->id, &x->failure,
                  torus_of(x)->nodes, x->before_go);
        router_send(all->set.router, port, &message);
    }
}

/* By its tree, or where that is cut by any way. */
int objection_port(const struct attempt *x)
{
    bool cut = x->tree.parent >= 0 && (x->fault.lost & 1u << x->tree.parent) != 0;

    return cut ? tree_messages_port(x->all, x->root) : x->tree.parent;
}

void objection_send(struct exchanges *all, int port, uint32_t handle, const struct exchange_id *id,
                    uint32_t root, const struct error *e, bool again)
{
    const struct peer_message message = {.kind = PEER_OBJECTION,
                                         .objection = {.exchange = handle,
                                                       .id = id->text,
                                                       .root = root,
                                                       .code = e->code,
                                                       .reason = e->text,
                                                       .again = again,
                                                       .culprit = e->culprit}};

    if (port >= 0)
        router_send(all->set.router, (unsigned)port, &message);
}

/* Of an exchange that is not known here. */
void verdict_pass_unknown(struct exchanges *all, unsigned port, const struct exchange_id *id,
                          const struct peer_verdict *message)
{
    uint32_t most = router_torus(all->set.router)->nodes;
    struct peer_message onward = {.kind = PEER_VERDICT, .verdict = *message};
    char reason[sizeof((struct error *)0)->text];
    uint64_t verdict = hash(id, message->code != ERROR_BUSY);

    if (message->left == 0 || knows(all, verdict) || !remember(all, verdict))
        return;
    onward.verdict.reason = text_printable(reason, sizeof reason, message->reason);
    onward.verdict.left = message->left - 1 < most ? message->left - 1 : most;
    router_flood(all->set.router, (int)port, &onward);
}
