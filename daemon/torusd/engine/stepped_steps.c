#include "daemon/torusd/engine/stepped_steps.h"

#include <string.h>

#include "proto/text.h"

/* --- the own block --- */

/* In an allgather this node's block for itself is its block for all nodes: the block is read once, and held
 * until it has left by every port. */
static void deliver_shared_block(struct stepped *s)
{
    const struct cut_round *cut = &s->leaving;
    struct stepped_slot *slots = &s->slot[s->plan->slots];
    uint32_t me = s->plan->rank;
    uint64_t size = s->base.set.source->ops->size(s->base.set.source, me);
    uint64_t end = cut->begin + cut_whole(cut, size);

    for (uint32_t i = 0; s->own.at == cut->begin && i < s->base.set.segments; i++)
        stepped_open_slot(&slots[i], cut_length(cut, size, i));
    while (s->own.at < end) {
        uint32_t segment = (uint32_t)((s->own.at - cut->begin) / cut->stride);
        uint32_t offset = (uint32_t)(s->own.at - cut_begin(cut, segment));
        const struct block_piece piece = {me, me, cut_begin(cut, segment), slots[segment].length};
        struct extent bytes;
        if (!frame_buffer_read_own(&s->buffer, &piece, offset,
                                   stepped_mark(s, &slots[segment].mark), piece.length - offset,
                                   &bytes))
            return;
        if (slots[segment].sends > 0)
            frame_buffer_put(&s->buffer, &slots[segment].hold, offset, &bytes);
        s->own.at += bytes.length;
        slab_unref(bytes.slab);
    }
    s->own.delivered = s->base.failure.code == ERROR_NONE;
}

/* Delivers the part of that block that the source has, up to the end of the round; sets own.delivered when
 * the end is reached. */
static void stepped_deliver_own(struct stepped *s)
{
    if (s->base.set.gather)
        deliver_shared_block(s);
    else
        frame_buffer_deliver_own(&s->buffer, s->plan->rank, &s->leaving, &s->own);
}

/* --- clears --- */

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

/* Relays the clear towards the start of the leg. It must take the leg's own path, because otherwise it could
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

/* --- steps --- */

void stepped_expect_arrivals(struct stepped *s)
{
    const struct plan *plan = s->plan;

    memset(s->incoming, 0, plan->arrivals * sizeof *s->incoming);
    memset(s->takes_left, 0, plan->steps * sizeof *s->takes_left);
    s->arrivals_left = plan->arrivals;
    for (uint32_t i = 0; i < plan->arrivals; i++)
        if (plan->arrival[i].left == 0)
            s->takes_left[plan->arrival[i].step]++;
}

/* Adds this round's blocks and messages on the channels to the counts. */
static void fold_channel_counts(struct stepped *s)
{
    for (uint32_t step = 0; step < s->base.counts.steps; step++) {
        for (unsigned port = 0; port < s->ports; port++) {
            uint32_t blocks = s->channel_blocks[step * s->ports + port];
            uint32_t messages = s->channel_messages[step * s->ports + port];
            if (blocks > s->base.counts.step_blocks[step])
                s->base.counts.step_blocks[step] = blocks;
            if (messages > s->base.counts.step_messages[step])
                s->base.counts.step_messages[step] = messages;
        }
    }
    memset(s->channel_blocks, 0,
           (size_t)s->base.counts.steps * s->ports * sizeof *s->channel_blocks);
    memset(s->channel_messages, 0,
           (size_t)s->base.counts.steps * s->ports * sizeof *s->channel_messages);
}

static void activate_sends(struct stepped *s)
{
    const struct plan *plan = s->plan;

    while (s->sends_active < plan->sends && plan->send[s->sends_active].step <= s->step) {
        unsigned port = plan->send[s->sends_active++].port;
        s->sender[port].active++;
        engine_wake_port(&s->base, port);
    }
}

/* With one port, a step also waits until its messages have left. */
static bool is_step_over(const struct stepped *s)
{
    return s->takes_left[s->step] == 0 &&
           (!s->base.set.one_port || s->step_sends_left[s->step] == 0);
}

void stepped_advance(struct stepped *s)
{
    const struct plan *plan = s->plan;

    if (!s->started || s->round_over)
        return;
    if (s->base.set.gather && !s->own.delivered && s->base.failure.code == ERROR_NONE)
        stepped_deliver_own(s);
    if (s->base.set.gather && !s->own.delivered)
        return;
    activate_sends(s);
    while (s->step < plan->steps && is_step_over(s)) {
        engine_note(&s->base, TRACE_STEP, s->step, s->round);
        s->step++;
        activate_sends(s);
    }
    if (!s->own.delivered && s->base.failure.code == ERROR_NONE)
        stepped_deliver_own(s);
    if (s->step < plan->steps || !s->own.delivered || s->base.damaged_count > 0 ||
        s->base.set.sink->ops->pending(s->base.set.sink) > 0)
        return;
    if (!s->all_delivered) {
        s->all_delivered = true;
        s->base.counts.delivered_at = router_now(s->base.set.router);
    }
    if (s->arrivals_left > 0 || s->sends_left > 0)
        return;
    s->round_over = true;
    engine_note(&s->base, TRACE_FINISHED_ROUND, 0, s->round);
    s->base.rounds_finished = s->round + 1;
    s->base.counts.blocks_delivered = s->delivered;
    s->delivered = 0;
    fold_channel_counts(s);
    /* a neighbour may start the next round before this node does */
    stepped_expect_arrivals(s);
}

void stepped_admit(struct engine *engine, uint64_t round)
{
    struct stepped *s = stepped_of(engine);

    s->round = round;
    s->started = true;
    s->round_over = false;
    s->step = 0;
    s->sends_active = 0;
    s->sends_left = s->plan->sends;
    s->leaving = cut_round(&s->cut, engine_round(&s->base, round));
    s->own = (struct own_block){.at = s->leaving.begin, .delivered = s->base.set.idle};
    s->all_delivered = false;
    for (unsigned port = 0; port < s->ports; port++) {
        struct stepped_sender *sender = &s->sender[port];
        *sender = (struct stepped_sender){.message = sender->message, .count = sender->count};
    }
    memset(s->step_sends_left, 0, s->plan->steps * sizeof *s->step_sends_left);
    for (uint32_t i = 0; i < s->plan->sends; i++)
        s->step_sends_left[s->plan->send[i].step]++;
    stepped_clear_next(s);
    stepped_advance(s);
}
