#include "daemon/torusd/engine/stepped/clears.h"

#include "proto/text.h"

static void send_clear(struct stepped *s, unsigned port, const struct peer_clear *clear)
{
    const struct peer_message message = {.kind = PEER_CLEAR, .clear = *clear};

    if (!engine_has_lost(&s->base, port))
        router_send(s->base.set.router, engine_port(&s->base, port), &message);
}

void stepped_clear_next(struct stepped *s)
{
    const struct plan *plan = s->plan;
    uint32_t i = 0;

    if (!s->base.set.one_port)
        return;
    while (i < plan->arrivals && (plan->arrival[i].left > 0 || stepped_is_complete(s, i)))
        i++;
    if (i == plan->arrivals)
        return;
    const struct peer_clear clear = {.exchange = s->base.set.handle,
                                     .round = (uint32_t)(s->round & ENGINE_ROUND_MASK),
                                     .step = plan->arrival[i].step,
                                     .hops = plan->arrival[i].hops,
                                     .left = plan->arrival[i].hops - 1u};
    send_clear(s, plan->arrival[i].port, &clear);
}

/* Relays the clear towards the start of the leg. It must take the leg's own way, because otherwise it could
 * circulate forever. */
static int pass_clear_on(struct stepped *s, unsigned port, const struct peer_clear *clear,
                         struct error *e)
{
    unsigned onward = torus_port_opposite(engine_torus(&s->base.set), port);
    struct peer_clear next = *clear;

    if (clear->hops > UINT16_MAX ||
        plan_arrival(s->plan, clear->step, (uint8_t)onward, (uint16_t)clear->hops,
                     (uint16_t)(clear->hops - clear->left)) == NULL)
        return error_set(e, ERROR_PROTOCOL, "no leg of step %u with %u %s passes here", clear->step,
                         clear->hops, text_plural(clear->hops, "hop", "hops"));
    next.left--;
    send_clear(s, onward, &next);
    return 0;
}

int stepped_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                  struct error *e)
{
    struct stepped *s = stepped_of(engine);
    const struct plan *plan = s->plan;

    if (clear->left >= clear->hops)
        return error_set(e, ERROR_PROTOCOL, "a clear with %u of %u %s to go", clear->left,
                         clear->hops, text_plural(clear->hops, "hop", "hops"));
    if ((clear->round & ENGINE_ROUND_MASK) != (stepped_arriving_round(s) & ENGINE_ROUND_MASK))
        return error_set(
            e, ERROR_PROTOCOL, "a clear for round %u (modulo %u), but this node is in round %llu",
            clear->round, ENGINE_ROUND_MASK + 1, (unsigned long long)stepped_arriving_round(s));
    if (clear->left > 0)
        return pass_clear_on(s, port, clear, e);
    for (uint32_t i = 0; i < plan->sends; i++) {
        const struct plan_message *m = &plan->send[i];
        if (m->step != clear->step || m->port != port || m->hops != clear->hops)
            continue;
        s->cleared[i] = stepped_arriving_round(s) + 1;
        engine_wake_port(&s->base, port);
        return 0;
    }
    return error_set(e, ERROR_PROTOCOL, "no leg of step %u with %u %s starts here", clear->step,
                     clear->hops, text_plural(clear->hops, "hop", "hops"));
}
