/* What this node does when other nodes call it to take part in a copy. */
#include "daemon/lib/base/log.h"
#include "daemon/torusd/copy/internal.h"
#include "daemon/torusd/router/router.h"

/* Sends a refusal by the shortest path. Drops it if there is none, or if too much waits there: the initiator calls
 * again. */
static void send_refusal(struct copies *c, const struct peer_copy_refusal *refusal)
{
    const struct topology *p = router_topology(c->set.router);
    const uint32_t nodes = router_torus(c->set.router)->nodes;
    const unsigned port = p->via[refusal->initiator];

    if (p->entry[refusal->initiator].hops < nodes && !router_is_full(c->set.router, port))
        router_send(c->set.router, port,
                    &(struct peer_message){.kind = PEER_COPY_REFUSAL, .copy_refusal = *refusal});
}

void responder_refuse(struct copies *c, uint32_t initiator, uint64_t id, uint32_t attempt,
                      const struct error *why)
{
    log_warning("a copy of node %u does not begin here: %s", initiator, why->text);
    send_refusal(c, &(struct peer_copy_refusal){.initiator = initiator,
                                                .id = id,
                                                .attempt = attempt,
                                                .node = router_rank(c->set.router),
                                                .code = why->code,
                                                .reason = why->text,
                                                .left = router_torus(c->set.router)->nodes});
}

int copies_refusal_heard(struct copies *c, const struct peer_copy_refusal *refusal, struct error *e)
{
    const uint32_t nodes = router_torus(c->set.router)->nodes;
    struct peer_copy_refusal onward = *refusal;

    if (refusal->initiator >= nodes || refusal->node >= nodes || refusal->left == 0 ||
        refusal->left > nodes)
        return error_set(e, ERROR_PROTOCOL, "invalid refusal of a copy: no node can have sent it");
    if (refusal->initiator == router_rank(c->set.router)) {
        initiator_refused(c, refusal);
        return 0;
    }
    onward.left--;
    if (onward.left > 0 && flood_limit_answer(&c->calls, refusal->initiator, refusal->id) != NULL)
        send_refusal(c, &onward);
    return 0;
}

/* Begins to take part in an attempt. Returns 0, or -1 with *e. */
static int begin_agent(struct copies *c, const struct peer_copy_call *call, struct error *e)
{
    struct agent_setup setup = {.set = &c->set,
                                .due = &c->due,
                                .initiator = call->initiator,
                                .id = call->id,
                                .attempt = call->attempt};
    struct copy_request request;
    int result = -1;

    if (copies_count_agents(c) >= COPY_AGENTS_MOST)
        return error_set(e, ERROR_BUSY, "it takes part in %u other copies", COPY_AGENTS_MOST);
    if (copy_request_unpack(&request, call->request.data, call->request.len, e) != 0)
        return -1;
    setup.request = &request;
    if (copy_request_check(&request, router_torus(c->set.router), e) == 0 &&
        copies_add_agent(c, &setup, e) != NULL)
        result = 0;
    copy_request_free(&request);
    return result;
}

/* Takes a new call of another node. */
static void take_call(struct copies *c, const struct peer_copy_call *call)
{
    struct agent *a = copies_find_agent(c, call->initiator, call->id);
    const struct error over = {.code = ERROR_CANCELLED,
                               .text = "the node that was asked for the "
                                       "copy has given up this attempt"};
    struct error e;

    if (a != NULL) {
        a->heard_at = router_now(c->set.router);
        if (call->attempt > a->attempt || (call->request.len == 0 && !a->opened))
            agent_give_up(a, &over); /* a later call begins the new attempt */
        return;
    }
    if (call->request.len > 0 && begin_agent(c, call, &e) != 0)
        responder_refuse(c, call->initiator, call->id, call->attempt, &e);
}

int copies_call_heard(struct copies *c, unsigned port, const struct peer_copy_call *call,
                      struct error *e)
{
    const struct torus *t = router_torus(c->set.router);
    const struct flooded heard = {.id = call->id,
                                  .initiator = call->initiator,
                                  .number = call->number,
                                  .cost = 1,
                                  .answers_left = t->nodes};
    struct peer_message onward = {.kind = PEER_COPY_CALL, .copy_call = *call};

    if (call->initiator >= t->nodes || call->left == 0 || call->left > t->nodes ||
        call->attempt == 0 || call->request.len > COPY_REQUEST_MOST)
        return error_set(e, ERROR_PROTOCOL, "invalid call to a copy: no node can have made it");
    if (call->initiator == router_rank(c->set.router) ||
        flood_limit_take(&c->calls, port, &heard, router_now(c->set.router)) == NULL)
        return 0;
    onward.copy_call.left--;
    for (unsigned to = 0; to < torus_ports(t) && onward.copy_call.left > 0; to++)
        if (to != port && !router_is_full(c->set.router, to))
            router_send(c->set.router, to, &onward);
    take_call(c, call);
    return 0;
}
