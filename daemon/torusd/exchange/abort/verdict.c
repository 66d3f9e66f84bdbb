/* How an attempt fails on all nodes with the same text. Only the root decides. A node that cannot continue
 * sends the root an objection along the links of the tree. The root's verdict goes down the tree behind its
 * prepare, so every node that hears the verdict knows the attempt.
 *
 * If links are down, the tree may be cut, so the verdict is flooded as well. It may then reach nodes before the
 * prepare, or without it. These nodes pass it on for as many hops as there are nodes, and remember its id in
 * order to pass it on only once. When their memory for ids is full, they do not pass on more verdicts, so that
 * a node that invents verdicts cannot make the others flood the torus. A prepare that arrives after its verdict
 * is answered as busy: if the verdict was invented for a future id, the root retries under another one. Ids are
 * remembered for a short time only. If a prepare arrives after that, its attempt ends because of the fault,
 * which this node also knows.
 *
 * A node that was cut off ends its attempts by itself, with the error that it knows. When a link to it comes
 * up, it hears the verdicts that it may have missed, and from then on reports the same error as the other
 * nodes. */
#include "daemon/torusd/exchange/abort/verdict.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/record/id.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tree_messages.h"
#include "proto/text.h"

#define REMEMBERED_TIME (2 * VERDICT_TIME) /* longer than a prepare can be on its way */

/* Returns the hash to remember. `last`: the verdict fails the job; it is passed on even after the verdict that
 * withdrew the attempt. */
static uint64_t verdict_hash(const struct exchange_id *id, bool last)
{
    return (exchange_id_hash(id) << 1 | last) << 1 | 1; /* 0 marks a free entry */
}

static bool verdict_is_known(const struct exchanges *exchanges, uint64_t wanted)
{
    uint64_t now = router_now(exchanges->set.router);

    for (unsigned i = 0; i < VERDICTS_REMEMBERED; i++)
        if (exchanges->verdict[i] == wanted && now < exchanges->verdict_at[i] + REMEMBERED_TIME)
            return true;
    return false;
}

bool verdict_is_remembered(const struct exchanges *exchanges, const struct exchange_id *id)
{
    return verdict_is_known(exchanges, verdict_hash(id, false)) ||
           verdict_is_known(exchanges, verdict_hash(id, true));
}

/* Remembers a verdict. Returns false if there is no room, because the oldest one may still be on its way. */
static bool remember_verdict(struct exchanges *exchanges, uint64_t verdict)
{
    unsigned i = exchanges->next_verdict;
    uint64_t now = router_now(exchanges->set.router);

    if (exchanges->verdict[i] != 0 && now < exchanges->verdict_at[i] + VERDICT_TIME)
        return false;
    exchanges->verdict[i] = verdict;
    exchanges->verdict_at[i] = now;
    exchanges->next_verdict = (i + 1) % VERDICTS_REMEMBERED;
    return true;
}

bool verdict_is_cut(const struct attempt *x)
{
    return x->fault.at != ROUTER_NEVER || x->fault.lost != 0;
}

/* Makes a verdict on an attempt; the message borrows the texts. `before_go`: the root had sent no `go`. */
static struct peer_message make_verdict(uint32_t handle, const struct exchange_id *id,
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

void verdict_pass_on(struct attempt *x, const struct error *e, uint32_t left, int except)
{
    const struct peer_message message = make_verdict(x->handle, &x->id, e, left, x->before_go);

    if (left > 0)
        router_flood(router_of(x), except, &message);
    else
        tree_messages_to_children(x, &message);
}

void verdict_send(struct attempt *x, const struct error *e)
{
    x->verdict_heard = true;
    x->before_go = x->rounds.first_go_at == 0 && exchange_id_is_none(&x->resumes);
    verdict_pass_on(x, e, verdict_is_cut(x) ? torus_of(x)->nodes : 0, -1);
}

void verdict_flood(struct attempt *x, const struct error *e)
{
    x->verdict_heard = true;
    verdict_pass_on(x, e, torus_of(x)->nodes, -1);
}

void verdict_send_former(const struct job *j, const struct error *e)
{
    struct router *router = j->exchanges->set.router;
    bool open = job_has_been_open(j);
    const struct exchange_id *former = open ? &j->resumes : &j->former.id;
    if (exchange_id_is_none(former) ||
        (exchange_id_equal(former, &j->name.id) && job_is_under_way(j)))
        return;
    const struct peer_message message =
        make_verdict(j->former.handle, former, e, router_torus(router)->nodes, false);
    router_flood(router, -1, &message);
}

void verdict_answer(struct exchanges *exchanges, unsigned port, uint32_t handle,
                    const struct exchange_id *id, const struct error *e)
{
    const struct peer_message message =
        make_verdict(handle, id, e, router_torus(exchanges->set.router)->nodes, false);

    router_send(exchanges->set.router, port, &message);
}

void verdicts_repeat(struct exchanges *exchanges, unsigned port)
{
    for (const struct attempt *x = exchanges->ended; x != NULL; x = x->next) {
        if (x->state != EXCHANGE_FAILED || !x->verdict_heard || x->failure.code == ERROR_BUSY)
            continue;
        /* The hops start again, because the node at the other end may have restarted. */
        const struct peer_message message =
            make_verdict(x->handle, kind_of(x)->has_session ? attempt_first_id(x) : &x->id,
                         &x->failure, torus_of(x)->nodes, x->before_go);
        router_send(exchanges->set.router, port, &message);
    }
}

int objection_port(const struct attempt *x)
{
    bool cut = x->tree.parent >= 0 && (x->fault.lost & 1u << x->tree.parent) != 0;

    return cut ? tree_messages_port(x->exchanges, x->root) : x->tree.parent;
}

void objection_send(struct exchanges *exchanges, int port, uint32_t handle,
                    const struct exchange_id *id, uint32_t root, const struct error *e,
                    bool retry_may_help)
{
    const struct peer_message message = {.kind = PEER_OBJECTION,
                                         .objection = {.exchange = handle,
                                                       .id = id->text,
                                                       .root = root,
                                                       .code = e->code,
                                                       .reason = e->text,
                                                       .retry_may_help = retry_may_help,
                                                       .culprit = e->culprit}};

    if (port >= 0)
        router_send(exchanges->set.router, (unsigned)port, &message);
}

void verdict_pass_unknown(struct exchanges *exchanges, unsigned port, const struct exchange_id *id,
                          const struct peer_verdict *message)
{
    uint32_t most = router_torus(exchanges->set.router)->nodes;
    struct peer_message onward = {.kind = PEER_VERDICT, .verdict = *message};
    char reason[sizeof((struct error *)0)->text];
    uint64_t verdict = verdict_hash(id, message->code != ERROR_BUSY);

    if (message->left == 0 || verdict_is_known(exchanges, verdict) ||
        !remember_verdict(exchanges, verdict))
        return;
    onward.verdict.reason = text_printable(reason, sizeof reason, message->reason);
    onward.verdict.left = message->left - 1 < most ? message->left - 1 : most;
    router_flood(exchanges->set.router, (int)port, &onward);
}
