#include "daemon/torusd/engine/stepped/steps.h"

#include <string.h>

#include "daemon/torusd/engine/stepped/clears.h"
#include "daemon/torusd/engine/stepped/own_block.h"

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
