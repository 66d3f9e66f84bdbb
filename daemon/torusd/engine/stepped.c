#include "daemon/torusd/engine/stepped.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/schedule/predict.h"
#include "daemon/torusd/engine/stepped_steps.h"
#include "proto/text.h"

/* Relays a frame that has arrived by the port `in` at once, unless the link of the next port is lost. */
static void stepped_relay(struct stepped *s, unsigned in, const struct peer_stepped_data *data,
                          const struct extents *body, uint32_t body_length)
{
    unsigned out = torus_port_opposite(engine_torus(&s->base.set), in);
    struct outgoing *frame =
        engine_has_lost(&s->base, out) ? NULL : frame_buffer_new_frame(&s->buffer);
    struct peer_message onward = {.kind = PEER_STEPPED_DATA, .stepped_data = *data};

    if (frame == NULL)
        return;
    onward.stepped_data.left--;
    frame->body_length = body_length;
    frame->immediate = onward.stepped_data.left > 0;
    for (uint32_t i = 0; i < body->count; i++)
        frame_buffer_pass_on(&s->buffer, frame, &body->item[i]);
    frame = frame_buffer_ship(&s->buffer, out, frame, &onward, true);
    if (frame != NULL)
        router_relay(s->base.set.router, engine_port(&s->base, out), frame);
}

/* Whether this node is a destination of an arriving block. (A block without a slot ends here. In an
 * allgather, blocks with a slot are also delivered here, and then sent on.) */
static bool stays_here(const struct stepped *s, const struct plan_block *b)
{
    return b->slot == PLAN_NO_SLOT || s->base.set.gather;
}

static void begin_arriving_block(struct stepped *s, const struct plan_block *b, uint32_t length,
                                 const struct cut_round *cut)
{
    if (b->slot != PLAN_NO_SLOT)
        stepped_open_slot(&s->slot[b->slot], length);
    if (!stays_here(s, b))
        return;
    if (length == 0)
        frame_buffer_deliver_nothing(&s->buffer, b->source, cut_begin(cut, b->segment));
    s->delivered += b->segment == 0;
}

/* A frame that is being processed. */
struct stepped_arrival {
    const struct plan_message *message;
    struct stepped_incoming *in;
    struct cut_round cut;
    const struct peer_stepped_data *data;
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t have;           /* bytes of the body that are not processed yet */
    uint32_t sizes, digests; /* how many entries of the head have been used */
    uint32_t begun;          /* blocks that begin in it */
};

static bool is_relayed_arrival(const struct stepped_arrival *a)
{
    return a->message->left > 0;
}

/* Adds `bytes` to a block that has received in->offset bytes before. */
static void put_arriving_bytes(struct stepped *s, struct stepped_arrival *a,
                               const struct plan_block *b, const struct extent *bytes)
{
    struct stepped_incoming *in = a->in;

    if (s->base.failure.code != ERROR_NONE)
        return;
    if (b->slot != PLAN_NO_SLOT)
        frame_buffer_put(&s->buffer, &s->slot[b->slot].hold, in->offset, bytes);
    if (stays_here(s, b)) {
        const struct block_piece piece = stepped_piece(s, b, &a->cut, in->offset + in->remaining);
        (void)frame_buffer_deliver(&s->buffer, &piece, in->offset, stepped_mark(s, &in->mark),
                                   bytes);
    }
}

/* Ends a block whose last bytes are in this frame. Returns 0, or -1 with *e. */
static int end_arriving_block(struct stepped *s, struct stepped_arrival *a, struct error *e)
{
    struct stepped_incoming *in = a->in;

    if (!stepped_has_digest(s, in->offset))
        return 0;
    if (a->digests == a->data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "a block of %u %s without a digest", in->offset,
                         text_plural(in->offset, "byte", "bytes"));
    uint64_t digest = a->data->digests[a->digests++];
    if (is_relayed_arrival(a))
        return 0;
    const struct plan_block *b = &s->plan->block[a->message->first + in->begun - 1];
    if (b->slot != PLAN_NO_SLOT)
        s->slot[b->slot].mark.digest = digest;
    if (stays_here(s, b)) {
        const struct block_piece piece = stepped_piece(s, b, &a->cut, in->offset);
        (void)frame_buffer_compare(&s->buffer, &piece, &in->mark, digest);
    }
    return 0;
}

/* Takes bytes of the current block; bytes of a relayed message are only counted. Returns 0, or -1 with *e. */
static int take_block_bytes(struct stepped *s, struct stepped_arrival *a, struct error *e)
{
    struct stepped_incoming *in = a->in;

    while (in->remaining > 0 && a->have > 0) {
        uint32_t n = in->remaining < a->have ? in->remaining : a->have;
        if (!is_relayed_arrival(a)) {
            struct extent bytes;
            n = extents_take(a->body, &a->cursor, n, &bytes);
            put_arriving_bytes(s, a, &s->plan->block[a->message->first + in->begun - 1], &bytes);
        }
        in->remaining -= n;
        in->offset += n;
        a->have -= n;
        if (in->remaining == 0)
            return end_arriving_block(s, a, e);
    }
    return 0;
}

/* Finds the length of the message's next block. Returns 1, 0 if the block does not begin in this frame, or
 * -1 with *e. */
static int next_block_length(const struct stepped *s, struct stepped_arrival *a, uint32_t *length,
                             struct error *e)
{
    if (s->base.set.uniform) {
        *length = a->cut.stride;
        return *length == 0 || a->have > 0;
    }
    if (a->sizes == a->data->n_sizes)
        return 0;
    *length = a->data->sizes[a->sizes++];
    if (*length > a->cut.stride)
        return error_set(e, ERROR_PROTOCOL, "a piece of %u %s, but no piece has more than %u",
                         *length, text_plural(*length, "byte", "bytes"), a->cut.stride);
    return 1;
}

/* Divides the body's bytes among the blocks. */
static int take_frame_in(struct stepped *s, struct stepped_arrival *a, struct error *e)
{
    struct stepped_incoming *in = a->in;

    for (;;) {
        uint32_t length;
        if (take_block_bytes(s, a, e) != 0)
            return -1;
        if (in->remaining > 0 || in->begun == a->message->blocks)
            break; /* the next frame has the rest, if there is one */
        int begins = next_block_length(s, a, &length, e);
        if (begins < 0)
            return -1;
        if (begins == 0)
            break;
        if (!is_relayed_arrival(a) && s->base.failure.code == ERROR_NONE)
            begin_arriving_block(s, &s->plan->block[a->message->first + in->begun], length,
                                 &a->cut);
        in->remaining = length;
        in->offset = 0;
        in->begun++;
        a->begun++;
    }
    if (a->have > 0)
        return error_set(e, ERROR_PROTOCOL, "a frame has %u %s more than the blocks of its message",
                         a->have, text_plural(a->have, "byte", "bytes"));
    if (a->sizes < a->data->n_sizes)
        return error_set(e, ERROR_PROTOCOL, "a frame has %zu %s more than blocks that begin in it",
                         a->data->n_sizes - a->sizes,
                         text_plural(a->data->n_sizes - a->sizes, "size", "sizes"));
    if (a->digests < a->data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "a frame has %zu %s more than blocks that end in it",
                         a->data->n_digests - a->digests,
                         text_plural(a->data->n_digests - a->digests, "digest", "digests"));
    return 0;
}

static const struct plan_message *find_expected_message(const struct stepped *s, unsigned port,
                                                        const struct peer_stepped_data *data,
                                                        struct error *e)
{
    const struct plan_message *m = NULL;

    if ((data->round & ENGINE_ROUND_MASK) != (stepped_arriving_round(s) & ENGINE_ROUND_MASK)) {
        (void)error_set(e, ERROR_PROTOCOL,
                        "data of round %u (modulo %u), but this node is in round %llu", data->round,
                        ENGINE_ROUND_MASK + 1, (unsigned long long)stepped_arriving_round(s));
        return NULL;
    }
    if (data->hops <= UINT16_MAX && data->left < data->hops)
        m = plan_arrival(s->plan, data->step, (uint8_t)port, (uint16_t)data->hops,
                         (uint16_t)data->left);
    if (m == NULL)
        (void)error_set(e, ERROR_PROTOCOL,
                        "no message of step %u with %u %s, %u to go, is expected here", data->step,
                        data->hops, text_plural(data->hops, "hop", "hops"), data->left);
    return m;
}

/* engine_ops.frame */
static int stepped_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                         const struct extents *body, uint32_t body_length, struct error *e)
{
    struct stepped *s = stepped_of(engine);

    if (message->kind != PEER_STEPPED_DATA)
        return error_set(e, ERROR_PROTOCOL, "data without a step, but the exchange runs in steps");
    const struct peer_stepped_data *data = &message->stepped_data;
    const struct plan_message *m = find_expected_message(s, port, data, e);
    if (m == NULL)
        return -1;
    uint32_t index = (uint32_t)(m - s->plan->arrival);
    struct stepped_incoming *in = &s->incoming[index];
    struct stepped_arrival a = {
        .message = m, .in = in, .data = data, .body = body, .have = body_length};
    bool first = !in->started;

    if (stepped_is_complete(s, index))
        return error_set(e, ERROR_PROTOCOL, "the message of step %u arrived twice", m->step);
    in->started = true;
    if (m->left == 0 && first && ++s->ends > s->base.counts.most_ends)
        s->base.counts.most_ends = s->ends;
    a.cut = cut_round(&s->cut, engine_round(&s->base, stepped_arriving_round(s)));
    if (take_frame_in(s, &a, e) != 0)
        return -1;
    s->base.counts.port[port].rx_bytes += body_length;
    if (a.begun == 0 && (in->remaining > 0 || body_length == 0) &&
        engine_count_short_frame(&s->base, port, body_length, e) != 0)
        return -1;
    if (m->left > 0) {
        stepped_count_channel(s, m->step, torus_port_opposite(engine_torus(&s->base.set), port),
                              a.begun, first);
        stepped_relay(s, port, data, body, body_length);
    }
    if (stepped_is_complete(s, index)) {
        s->arrivals_left--;
        if (m->left == 0) {
            s->ends--;
            s->takes_left[m->step]--;
            stepped_clear_next(s);
        }
        stepped_advance(s);
    }
    return 0;
}

#define BLOCKS_A_FRAME 512u /* most that begin in a frame: bounds the head */
/* Pieces with digests that end in a frame: one of them may have begun before it. */
#define DIGESTS_A_FRAME (FRAME_SHORT_BODY / PIECE_DIGEST_LEAST + 1u)
#define NONE UINT32_MAX

/* Returns how many bytes of a block leave in this round. */
static uint32_t leaving_block_length(const struct stepped *s, const struct plan_block *b)
{
    const struct stepped_slot *slot = stepped_slot_of(s, b);
    struct source *source = s->base.set.source;

    if (slot != NULL)
        return slot->length;
    if (s->base.set.uniform)
        return s->leaving.stride;
    return cut_length(&s->leaving, source->ops->size(source, b->destination), b->segment);
}

/* Loads up to `most` bytes of the block, which has `length`, into the frame. Returns how many. */
static uint32_t move_block_bytes(struct stepped *s, struct stepped_sender *sender,
                                 const struct plan_block *b, uint32_t length, uint32_t most,
                                 struct outgoing *frame)
{
    struct stepped_slot *slot = stepped_slot_of(s, b);

    if (slot != NULL)
        return frame_buffer_load(&s->buffer, &slot->hold, sender->offset,
                                 slot->sends > 1 ? &sender->place : NULL, most, frame);
    const struct block_piece piece = stepped_piece(s, b, &s->leaving, length);
    uint32_t n = frame_buffer_load_own(&s->buffer, &piece, sender->offset,
                                       stepped_mark(s, &sender->mark), most, frame);
    sender->stalled = n < most && frame->body.count < OUTGOING_MAX_EXTENTS;
    return n;
}

/* Advances to the next block, because this one has left. */
static void end_leaving_block(struct stepped *s, struct stepped_sender *sender,
                              const struct plan_block *b)
{
    struct stepped_slot *slot = stepped_slot_of(s, b);

    if (slot != NULL && --slot->sends_left == 0)
        frame_buffer_drop(&s->buffer, &slot->hold);
    sender->block++;
    sender->offset = 0;
    sender->place = (struct hold_place){0};
}

/* Returns how many bytes a frame's body should have. Short frames are worth their cost only if relays pass
 * them on. */
static uint32_t leaving_frame_size(const struct stepped *s, const struct plan_message *m)
{
    if (m->hops == 1 || s->base.set.relayed == NULL)
        return RELAY_FRAME_MOST;
    return relay_frame_of(s->base.set.relayed[m->port], (uint64_t)m->blocks * s->leaving.stride);
}

/* The contents of a frame's head. */
struct stepped_filling {
    uint32_t size[BLOCKS_A_FRAME]; /* sizes of the blocks that begin in it, if they differ */
    uint32_t digests;
    uint64_t digest[DIGESTS_A_FRAME];
};

/* Fills the body from the message's blocks. Returns how many blocks begin in it. */
static uint32_t fill_stepped_frame(struct stepped *s, struct stepped_sender *sender,
                                   const struct plan_message *m, struct outgoing *frame,
                                   struct stepped_filling *filling)
{
    uint32_t begun = 0, most = leaving_frame_size(s, m);

    filling->digests = 0;
    while (sender->block < m->blocks && frame->body.count < OUTGOING_MAX_EXTENTS) {
        const struct plan_block *b = &s->plan->block[m->first + sender->block];
        uint32_t length = leaving_block_length(s, b);
        bool begins = sender->offset == 0;

        if (begins && begun == BLOCKS_A_FRAME && !s->base.set.uniform)
            break;
        if (length > sender->offset) {
            uint32_t want = frame_buffer_fits(frame, most, length - sender->offset);
            uint32_t n = want > 0 ? move_block_bytes(s, sender, b, length, want, frame) : 0;
            if (n == 0)
                break;
            sender->offset += n;
        }
        if (begins) {
            if (!s->base.set.uniform)
                filling->size[begun] = length;
            begun++;
        }
        if (sender->offset < length)
            break; /* the frame is full, or the source has no more bytes yet */
        if (stepped_has_digest(s, length)) {
            const struct stepped_slot *slot = stepped_slot_of(s, b);
            filling->digest[filling->digests++] =
                slot != NULL ? slot->mark.digest : sender->mark.digest;
        }
        end_leaving_block(s, sender, b);
    }
    return begun;
}

/* Returns the index in the plan of the message that leaves by the port now, or NONE. */
static uint32_t current_send(const struct stepped *s, unsigned port)
{
    const struct stepped_sender *sender = &s->sender[port];

    if (sender->current == sender->active || sender->stalled ||
        s->base.failure.code != ERROR_NONE || engine_has_lost(&s->base, port))
        return NONE;
    uint32_t index = sender->message[sender->current];
    return s->base.set.one_port && s->cleared[index] != s->round + 1 ? NONE : index;
}

/* Records that a frame leaves in which `begun` blocks of the message begin; after the last frame, advances
 * to the next message. */
static void note_frame_sent(struct stepped *s, struct stepped_sender *sender,
                            const struct plan_message *m, uint32_t begun)
{
    bool first = !sender->started;

    stepped_count_channel(s, m->step, m->port, begun, first);
    s->base.counts.port[m->port].combined_messages += first;
    if (first && ++s->starts > s->base.counts.most_starts)
        s->base.counts.most_starts = s->starts;
    sender->started = true;
    if (sender->block < m->blocks)
        return;
    sender->current++;
    sender->block = 0;
    sender->started = false;
    s->starts--;
    s->sends_left--;
    s->step_sends_left[m->step]--;
    if (s->sends_left == 0 || s->base.set.one_port)
        stepped_advance(s);
}

/* engine_ops.next */
static struct outgoing *stepped_next(struct engine *engine, unsigned port)
{
    struct stepped *s = stepped_of(engine);
    struct stepped_sender *sender = &s->sender[port];
    uint32_t index = current_send(s, port);
    struct outgoing *frame = index != NONE ? frame_buffer_new_frame(&s->buffer) : NULL;
    struct stepped_filling filling;

    if (frame == NULL)
        return NULL;
    const struct plan_message *m = &s->plan->send[index];
    uint32_t begun = fill_stepped_frame(s, sender, m, frame, &filling);
    const struct peer_message message = {
        .kind = PEER_STEPPED_DATA,
        .stepped_data = {.exchange = s->base.set.handle,
                         .round = (uint32_t)(s->round & ENGINE_ROUND_MASK),
                         .step = m->step,
                         .hops = m->hops,
                         .left = m->hops - 1u,
                         .has_call = s->base.set.call != NULL,
                         .call = engine_call(&s->base, port),
                         .n_sizes = s->base.set.uniform ? 0 : begun,
                         .n_digests = filling.digests,
                         .sizes = filling.size,
                         .digests = filling.digest}};
    frame->immediate = m->hops > 1;
    frame = frame_buffer_ship(&s->buffer, port, frame, &message,
                              frame->body_length > 0 || begun > 0 || sender->block == m->blocks);
    if (frame != NULL)
        note_frame_sent(s, sender, m, begun);
    return frame;
}

/* engine_ops.wake */
static void stepped_wake(struct engine *engine)
{
    struct stepped *s = stepped_of(engine);

    for (unsigned port = 0; port < s->ports; port++) {
        if (!s->sender[port].stalled)
            continue;
        s->sender[port].stalled = false;
        engine_wake_port(&s->base, port);
    }
    stepped_advance(s);
}

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

/* engine_ops.arrived: whole rounds, of blocks whose pieces have no digests. */
static void stepped_arrived(const struct engine *engine,
                            void (*tell)(void *context, uint32_t origin, uint64_t begin,
                                         uint64_t end),
                            void *context)
{
    const uint64_t whole = engine->rounds_finished * engine->set.round_bytes;

    if (engine->set.digests ||
        (engine->failure.code != ERROR_NONE && engine->failure.code != ERROR_DAMAGED))
        return;
    for (uint32_t origin = 0; whole > 0 && origin < engine_torus(&engine->set)->nodes; origin++)
        tell(context, origin, 0, whole);
}

static const struct engine_ops stepped_ops = {
    .free = stepped_free,
    .admit = stepped_admit,
    .frame = stepped_frame,
    .clear = stepped_clear,
    .next = stepped_next,
    .wake = stepped_wake,
    .describe = stepped_describe,
    .arrived = stepped_arrived,
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
