#include "daemon/torusd/engine/stepped.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/torusd/engine/stepped/clears.h"
#include "daemon/torusd/engine/stepped/receiving.h"
#include "daemon/torusd/engine/stepped/sending.h"
#include "daemon/torusd/engine/stepped/steps.h"

static void stepped_free(struct engine *engine)
{
    struct stepped *s = stepped_of(engine);

    free(s->step_sends_left);
    free(s->cleared);
    frame_buffer_close(&s->buffer);
    free(s->room);
    free(s->takes_left);
    free(s->incoming);
    free(s->slot);
    free(s->channel_blocks);
    free(s->channel_messages);
    free(s->base.counts.step_blocks);
    free(s->base.counts.step_messages);
    free(s->sender_messages);
    free(s);
}

static void stepped_describe(const struct engine *engine, char *text, size_t size)
{
    const struct stepped *s = (const struct stepped *)engine;
    const struct plan *plan = s->plan;
    /* Blocks may still have to be relayed after the last step. */
    uint32_t step = s->step < plan->steps ? s->step + 1 : plan->steps;

    for (uint32_t i = 0; i < plan->arrivals && !s->round_over; i++) {
        const struct plan_message *m = &plan->arrival[i];
        char name[TORUS_PORT_NAME_SIZE];
        if (stepped_is_complete(s, i))
            continue;
        (void)snprintf(text, size,
                       "step %u of %u, waiting for the message of step %u on port %s to node %u",
                       step, plan->steps, m->step + 1, engine_port_name(engine, m->port, name),
                       engine_neighbour(engine, m->port));
        return;
    }
    if (s->sends_left > 0)
        (void)snprintf(text, size, "step %u of %u, still sending", step, plan->steps);
    else
        (void)snprintf(text, size, "all sent and received");
}

static enum engine_wait why_waits(const struct stepped *s, const struct stepped_sender *sender)
{
    struct sink *sink = s->base.set.sink;

    if (sender->current < sender->active) {
        if (sender->stalled)
            return ENGINE_SOURCE;
        return s->base.set.one_port && s->cleared[sender->message[sender->current]] != s->round + 1
                   ? ENGINE_OTHERS
                   : ENGINE_READY;
    }
    if (sender->current < sender->count && !s->round_over)
        return s->base.set.gather && !s->own.delivered ? ENGINE_SOURCE : ENGINE_OTHERS;
    if (s->round_over)
        return engine_is_last_round(&s->base, s->round) ? ENGINE_DONE : ENGINE_ROUND;
    return sink->ops->pending(sink) > 0 ? ENGINE_SINK : ENGINE_DONE;
}

static void stepped_waits(const struct engine *engine, enum engine_wait *port)
{
    const struct stepped *s = (const struct stepped *)engine;

    for (unsigned i = 0; i < s->ports; i++)
        port[i] = s->started ? why_waits(s, &s->sender[i]) : ENGINE_ROUND;
}

static const struct engine_ops stepped_ops = {
    .free = stepped_free,
    .admit = stepped_admit,
    .frame = stepped_frame,
    .clear = stepped_clear,
    .next = stepped_next,
    .wake = stepped_wake,
    .describe = stepped_describe,
    .waits = stepped_waits,
};

static void count_slot_sends(struct stepped *s)
{
    const struct plan *plan = s->plan;

    for (const struct plan_message *m = plan->send; m < plan->send + plan->sends; m++) {
        for (uint32_t i = 0; i < m->blocks; i++) {
            struct stepped_slot *slot = stepped_slot_of(s, &plan->block[m->first + i]);
            if (slot != NULL)
                slot->sends++;
        }
    }
}

static int lay_out_senders(struct stepped *s)
{
    const struct plan *plan = s->plan;
    uint32_t at = 0;

    s->sender_messages = calloc(plan->sends + 1, sizeof *s->sender_messages);
    if (s->sender_messages == NULL)
        return -1;
    for (unsigned port = 0; port < s->ports; port++) {
        s->sender[port].message = s->sender_messages + at;
        for (uint32_t i = 0; i < plan->sends; i++)
            if (plan->send[i].port == port)
                s->sender_messages[at++] = i;
        s->sender[port].count = (uint32_t)(s->sender_messages + at - s->sender[port].message);
    }
    return 0;
}

static void *allocate_array(size_t count, size_t size)
{
    return calloc(count + 1, size); /* never 0 bytes */
}

/* Allocates the tables whose sizes the plan determines. Returns 0, or -1 if there is no memory. */
static int allocate_by_plan(struct stepped *s)
{
    const struct plan *plan = s->plan;
    struct engine_counts *counts = &s->base.counts;
    size_t channels = (size_t)plan->steps * s->ports;
    size_t slots = (size_t)plan->slots + (s->base.set.gather ? s->base.set.segments : 0);

    s->step_sends_left = allocate_array(plan->steps, sizeof *s->step_sends_left);
    s->takes_left = allocate_array(plan->steps, sizeof *s->takes_left);
    s->cleared = allocate_array(plan->sends, sizeof *s->cleared);
    s->incoming = allocate_array(plan->arrivals, sizeof *s->incoming);
    s->slot = allocate_array(slots, sizeof *s->slot);
    s->channel_blocks = allocate_array(channels, sizeof *s->channel_blocks);
    s->channel_messages = allocate_array(channels, sizeof *s->channel_messages);
    counts->step_blocks = allocate_array(plan->steps, sizeof *counts->step_blocks);
    counts->step_messages = allocate_array(plan->steps, sizeof *counts->step_messages);
    if (s->step_sends_left == NULL || s->takes_left == NULL || s->cleared == NULL ||
        s->incoming == NULL || s->slot == NULL || s->channel_blocks == NULL ||
        s->channel_messages == NULL || counts->step_blocks == NULL ||
        counts->step_messages == NULL || frame_buffer_room(&s->buffer, slots, &s->room) != 0)
        return -1;
    for (uint32_t i = 0; i < slots; i++)
        s->slot[i].hold = frame_buffer_hold(&s->buffer, s->room, i);
    return lay_out_senders(s);
}

struct engine *stepped_new(const struct engine_setup *setup, const struct plan *plan,
                           struct error *e)
{
    struct stepped *s = calloc(1, sizeof *s);

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        return NULL;
    }
    s->base.ops = &stepped_ops;
    s->base.set = *setup;
    s->plan = plan;
    s->ports = torus_ports(engine_torus(setup));
    s->base.counts.steps = plan->steps;
    s->cut = engine_cut(setup, 0);
    frame_buffer_init(&s->buffer, &s->base, cut_longest(&s->cut));
    if (allocate_by_plan(s) != 0) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        stepped_free(&s->base);
        return NULL;
    }
    count_slot_sends(s);
    stepped_expect_arrivals(s);
    return &s->base;
}
