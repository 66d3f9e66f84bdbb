#include "daemon/exchange/stepped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_A_FRAME 512u      /* that begin in it; bounds the head when sizes travel along */
#define FRAME_FILL (16u * 1024u) /* body bytes: what a relay waits for before it passes them on */
#define COPIED_MOST 64u /* bytes of a block that costs less to copy than to keep track of */

/* How far a combined message has come in. */
struct incoming {
    uint32_t begun;     /* blocks */
    uint32_t remaining; /* bytes of the current block that are still to come */
    uint32_t offset;    /* bytes of it that have come */
    bool started;
};

/* Where the messages that leave by one port stand; they leave in the plan's order. */
struct sender {
    const uint32_t *message; /* indices into plan.send */
    uint32_t count;
    uint32_t active;             /* how many of them may leave: their step has come */
    uint32_t current;            /* the one that is leaving */
    uint32_t block;              /* the one of its blocks that is leaving, */
    uint32_t offset;             /* the bytes of it that have left, */
    struct extent_cursor cursor; /* and where they end, for a block in transit */
    bool started;                /* something of the current message has left */
    bool stalled;                /* the source was asked and had nothing yet */
};

/* A block in transit. In an allgather, behind the plan's slots: our own. */
struct slot {
    struct extents bytes;
    uint32_t length;
    uint32_t sends; /* by which it leaves in each round */
    uint32_t sends_left;
};

struct stepped {
    struct engine base;
    const struct plan *plan;
    unsigned ports;
    uint64_t round;
    bool started;
    bool round_over;
    uint32_t step;
    uint32_t sends_active; /* plan.send up to here are */
    uint32_t sends_left;
    uint32_t *step_sends_left; /* by step */
    uint32_t arrivals_left;
    uint32_t *takes_left;  /* by step */
    uint32_t starts, ends; /* legs under way that start here, that end here */
    uint64_t *cleared;     /* one-port, by plan.send: 1 + the last round for which it was cleared */
    struct incoming *incoming;
    struct slot *slot;
    uint8_t *copies;         /* of the blocks in transit by slot, if they are small; else NULL */
    uint32_t copy_stride;    /* from one to the next */
    struct slab_writer body; /* copies on their way out */
    struct sender sender[TORUS_MAX_PORTS];
    uint32_t *sender_messages;
    uint64_t own_offset; /* of our block for ourselves */
    bool own_delivered;
    uint32_t *channel_blocks; /* [step * ports + port], this round */
    uint32_t *channel_messages;
    uint64_t delivered; /* blocks from others, this round */
    bool all_delivered;
};

/* A round's part of the blocks: where it begins in each, and how far it is from the start of one
 * segment to that of the next. Where sizes differ, that is the same for all blocks, since the end
 * of a leg does not know how long the whole block is. */
struct part {
    uint64_t begin;
    uint32_t stride;
};

static struct part part_of(const struct stepped *s, uint64_t round)
{
    const struct engine_setup *set = &s->base.set;
    struct part part = {engine_offset(&s->base, round), 0};

    if (set->uniform)
        part.stride = engine_part(&s->base, set->block_bytes, round) / set->segments;
    else
        part.stride =
            set->segment_bytes / set->segments + (set->segment_bytes % set->segments != 0);
    return part;
}

/* Where a segment begins in its block. */
static uint64_t segment_start(const struct part *part, uint32_t segment)
{
    return part->begin + (uint64_t)segment * part->stride;
}

static struct stepped *of(struct engine *engine)
{
    return (struct stepped *)engine;
}

static bool is_complete(const struct stepped *s, uint32_t arrival)
{
    const struct incoming *in = &s->incoming[arrival];

    return in->started && in->begun == s->plan->arrival[arrival].blocks && in->remaining == 0;
}

/* The round that frames coming in now belong to. */
static uint64_t taking(const struct stepped *s)
{
    return s->round_over ? s->round + 1 : s->round;
}

static void expect_arrivals(struct stepped *s)
{
    const struct plan *plan = s->plan;

    memset(s->incoming, 0, plan->arrivals * sizeof *s->incoming);
    memset(s->takes_left, 0, plan->steps * sizeof *s->takes_left);
    s->arrivals_left = plan->arrivals;
    for (uint32_t i = 0; i < plan->arrivals; i++)
        if (plan->arrival[i].left == 0)
            s->takes_left[plan->arrival[i].step]++;
}

/* Where a block that leaves is, or NULL: it comes from the source as it goes. */
static struct slot *slot_of_send(const struct stepped *s, const struct plan_block *b)
{
    if (b->slot != PLAN_NO_SLOT)
        return &s->slot[b->slot];
    return s->base.set.gather ? &s->slot[s->plan->slots] : NULL;
}

static void count_sends(struct stepped *s)
{
    const struct plan *plan = s->plan;

    for (const struct plan_message *m = plan->send; m < plan->send + plan->sends; m++) {
        for (uint32_t i = 0; i < m->blocks; i++) {
            struct slot *slot = slot_of_send(s, &plan->block[m->first + i]);
            if (slot != NULL)
                slot->sends++;
        }
    }
}

static void open_slot(struct slot *slot, uint32_t length)
{
    extents_clear(&slot->bytes);
    slot->length = length;
    slot->sends_left = slot->sends;
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

static void stepped_free(struct engine *engine)
{
    struct stepped *s = of(engine);

    free(s->step_sends_left);
    free(s->cleared);
    if (s->slot != NULL)
        for (uint32_t i = 0; i <= s->plan->slots; i++)
            extents_free(&s->slot[i].bytes);
    slab_writer_close(&s->body);
    free(s->copies);
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

/* Delivers our block for ourselves, which no link carries. In an allgather it is the one for all:
 * read once, it stays until it has left by every port. */
static void deliver_own(struct stepped *s)
{
    uint32_t me = s->plan->rank;
    uint64_t size = s->base.set.source->ops->size(s->base.set.source, me);
    uint64_t begin = engine_offset(&s->base, s->round);
    uint64_t end = begin + engine_part(&s->base, size, s->round);
    struct slot *slot = s->base.set.gather ? &s->slot[s->plan->slots] : NULL;
    struct extent piece;
    struct error e;

    if (slot != NULL && s->own_offset == begin)
        open_slot(slot, (uint32_t)(end - begin));
    while (s->own_offset < end) {
        int result = s->base.set.source->ops->read(s->base.set.source, me, s->own_offset,
                                                   (uint32_t)(end - s->own_offset), &piece, &e);
        if (result < 0)
            (void)engine_fail(&s->base, &e);
        if (result <= 0)
            return;
        result = s->base.set.sink->ops->write(s->base.set.sink, me, s->own_offset, &piece, &e);
        s->own_offset += piece.length;
        if (result != 0)
            (void)engine_fail(&s->base, &e);
        else if (slot != NULL && slot->sends > 0 &&
                 extents_add(&slot->bytes, piece.slab, piece.data, piece.length) != 0)
            result = engine_no_memory(&s->base);
        slab_unref(piece.slab);
        if (result != 0)
            return;
    }
    s->own_delivered = true;
}

/* What this round put on the channels, into the counts. */
static void fold_counts(struct stepped *s)
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

static void send_clear(struct stepped *s, unsigned port, Peer__Clear *clear)
{
    Peer__Head head = PEER__HEAD__INIT;

    head.kind_case = PEER__HEAD__KIND_CLEAR;
    head.clear = clear;
    if (!engine_has_lost(&s->base, port))
        router_send(s->base.set.router, port, &head);
}

/* One-port: the first leg that ends here and has not come in may start. */
static void clear_next(struct stepped *s)
{
    const struct plan *plan = s->plan;
    Peer__Clear clear = PEER__CLEAR__INIT;
    uint32_t i = 0;

    if (!s->base.set.one_port)
        return;
    while (i < plan->arrivals && (plan->arrival[i].left > 0 || is_complete(s, i)))
        i++;
    if (i == plan->arrivals)
        return;
    clear.exchange = s->base.set.handle;
    clear.round = (uint32_t)(s->round & ENGINE_ROUND_MASK);
    clear.step = plan->arrival[i].step;
    clear.hops = plan->arrival[i].hops;
    clear.left = plan->arrival[i].hops - 1u;
    send_clear(s, plan->arrival[i].port, &clear);
}

static void activate(struct stepped *s)
{
    const struct plan *plan = s->plan;

    while (s->sends_active < plan->sends && plan->send[s->sends_active].step <= s->step) {
        unsigned port = plan->send[s->sends_active++].port;
        s->sender[port].active++;
        router_wake(s->base.set.router, port);
    }
}

/* One-port: a step is over when what is sent in it has left, too. */
static bool step_over(const struct stepped *s)
{
    return s->takes_left[s->step] == 0 &&
           (!s->base.set.one_port || s->step_sends_left[s->step] == 0);
}

/* Goes on as far as what has come in allows. */
static void advance(struct stepped *s)
{
    const struct plan *plan = s->plan;

    if (!s->started || s->round_over)
        return;
    if (s->base.set.gather && !s->own_delivered && s->base.failure.code == ERROR_NONE)
        deliver_own(s);
    if (s->base.set.gather && !s->own_delivered)
        return;
    activate(s);
    while (s->step < plan->steps && step_over(s)) {
        s->step++;
        activate(s);
    }
    if (!s->own_delivered && s->base.failure.code == ERROR_NONE)
        deliver_own(s);
    if (s->step < plan->steps || !s->own_delivered ||
        s->base.set.sink->ops->pending(s->base.set.sink) > 0)
        return;
    if (!s->all_delivered) {
        s->all_delivered = true;
        s->base.counts.delivered_at = router_now(s->base.set.router);
    }
    if (s->arrivals_left > 0 || s->sends_left > 0)
        return;
    s->round_over = true;
    s->base.rounds_finished = s->round + 1;
    s->base.counts.blocks_delivered = s->delivered;
    s->delivered = 0;
    fold_counts(s);
    expect_arrivals(s); /* of the next round: a neighbour may hear of it before we do */
}

static void stepped_admit(struct engine *engine, uint64_t round)
{
    struct stepped *s = of(engine);

    s->round = round;
    s->started = true;
    s->round_over = false;
    s->step = 0;
    s->sends_active = 0;
    s->sends_left = s->plan->sends;
    s->own_offset = engine_offset(&s->base, round);
    s->own_delivered = s->base.set.idle;
    s->all_delivered = false;
    for (unsigned port = 0; port < s->ports; port++) {
        struct sender *sender = &s->sender[port];
        *sender = (struct sender){.message = sender->message, .count = sender->count};
    }
    memset(s->step_sends_left, 0, s->plan->steps * sizeof *s->step_sends_left);
    for (uint32_t i = 0; i < s->plan->sends; i++)
        s->step_sends_left[s->plan->send[i].step]++;
    clear_next(s);
    advance(s);
}

static void count_channel(struct stepped *s, uint32_t step, unsigned port, uint32_t blocks,
                          bool message)
{
    s->base.counts.port[port].tx_blocks += blocks;
    s->channel_blocks[step * s->ports + port] += blocks;
    s->channel_messages[step * s->ports + port] += message;
}

/* --- coming in --- */

static int relay(struct stepped *s, unsigned in, const Peer__SteppedData *data,
                 const struct extents *body, uint32_t body_length)
{
    unsigned out = torus_port_opposite(in); /* straight on */
    if (engine_has_lost(&s->base, out))
        return 0;
    struct outgoing *frame = outgoing_new(router_outgoing(s->base.set.router));
    Peer__SteppedData onward = *data;
    Peer__Head head = PEER__HEAD__INIT;

    if (frame == NULL)
        return engine_no_memory(&s->base);
    onward.left--;
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &onward;
    frame->body_length = body_length;
    frame->in_passing = onward.left > 0;
    for (uint32_t i = 0; i < body->count; i++)
        if (extents_add(&frame->body, body->item[i].slab, body->item[i].data,
                        body->item[i].length) != 0)
            goto fail;
    if (outgoing_set_head(frame, &head) != 0)
        goto fail;
    s->base.counts.port[out].tx_bytes += body_length;
    router_relay(s->base.set.router, out, frame);
    return 0;
fail:
    outgoing_free(router_outgoing(s->base.set.router), frame);
    return engine_no_memory(&s->base);
}

/* Whether a block that comes in is for us. In an exchange one for us may go on as well, and come
 * back (imaginary nodes). */
static bool stays_here(const struct stepped *s, const struct plan_block *b)
{
    return b->slot == PLAN_NO_SLOT || s->base.set.gather;
}

static int begin_block(struct stepped *s, const struct plan_message *m, const struct incoming *in,
                       const struct part *part)
{
    const struct plan_block *b = &s->plan->block[m->first + in->begun];
    struct extent nothing = {0};
    struct error e;

    if (b->slot != PLAN_NO_SLOT)
        open_slot(&s->slot[b->slot], in->remaining);
    if (!stays_here(s, b))
        return 0;
    if (in->remaining == 0 &&
        s->base.set.sink->ops->write(s->base.set.sink, b->source, segment_start(part, b->segment),
                                     &nothing, &e) != 0)
        return engine_fail(&s->base, &e);
    s->delivered += b->segment == 0;
    return 0;
}

static uint8_t *copy_of(const struct stepped *s, const struct plan_block *b)
{
    return s->copies + (size_t)b->slot * s->copy_stride;
}

/* `piece` continues the block that was begun last. */
static int put(struct stepped *s, const struct plan_message *m, const struct incoming *in,
               const struct part *part, const struct extent *piece)
{
    const struct plan_block *b = &s->plan->block[m->first + in->begun - 1];
    struct error e;

    if (b->slot != PLAN_NO_SLOT && s->copies != NULL)
        memcpy(copy_of(s, b) + in->offset, piece->data, piece->length);
    else if (b->slot != PLAN_NO_SLOT &&
             extents_add(&s->slot[b->slot].bytes, piece->slab, piece->data, piece->length) != 0)
        return engine_no_memory(&s->base);
    if (!stays_here(s, b))
        return 0;
    s->base.counts.bytes_delivered += piece->length;
    if (s->base.set.sink->ops->write(s->base.set.sink, b->source,
                                     segment_start(part, b->segment) + in->offset, piece, &e) != 0)
        return engine_fail(&s->base, &e);
    return 0;
}

/* Sorts the body's bytes into blocks; a relayed message is only followed. */
static int take_in(struct stepped *s, const struct plan_message *m, struct incoming *in,
                   uint64_t round, const Peer__SteppedData *data, const struct extents *body,
                   uint32_t body_length, uint32_t *begun_here, struct error *e)
{
    bool relayed = m->left > 0;
    struct part part = part_of(s, round);
    struct extent_cursor cursor = {0};
    struct extent piece;
    size_t sizes_used = 0;
    uint32_t have = body_length;

    for (;;) {
        while (in->remaining > 0 && have > 0) {
            uint32_t most = in->remaining < have ? in->remaining : have;
            uint32_t n = most;
            if (!relayed) {
                n = extents_take(body, &cursor, most, &piece);
                if (s->base.failure.code == ERROR_NONE)
                    (void)put(s, m, in, &part, &piece);
            }
            in->remaining -= n;
            in->offset += n;
            have -= n;
        }
        if (in->remaining > 0)
            break; /* the rest comes with the next frame */
        if (in->begun == m->blocks)
            break;
        if (s->base.set.uniform) {
            in->remaining = part.stride;
            if (in->remaining > 0 && have == 0) {
                in->remaining = 0;
                break;
            }
        } else {
            if (sizes_used == data->n_sizes)
                break;
            in->remaining = data->sizes[sizes_used++];
            if (in->remaining > s->base.set.segment_bytes)
                return error_set(e, ERROR_PROTOCOL, "a block of %u bytes in a round of at most %u",
                                 in->remaining, s->base.set.segment_bytes);
        }
        in->offset = 0;
        if (!relayed && s->base.failure.code == ERROR_NONE)
            (void)begin_block(s, m, in, &part);
        in->begun++;
        ++*begun_here;
    }
    if (have > 0)
        return error_set(e, ERROR_PROTOCOL, "%u bytes more than the message's blocks have", have);
    if (sizes_used < data->n_sizes)
        return error_set(e, ERROR_PROTOCOL, "sizes of %zu blocks too many",
                         data->n_sizes - sizes_used);
    return 0;
}

static const struct plan_message *find_arrival(const struct stepped *s, unsigned port,
                                               const Peer__SteppedData *data, struct error *e)
{
    const struct plan_message *m = NULL;

    if ((data->round & ENGINE_ROUND_MASK) != (taking(s) & ENGINE_ROUND_MASK)) {
        (void)error_set(e, ERROR_PROTOCOL, "data of round %u (modulo %u) in round %llu",
                        data->round, ENGINE_ROUND_MASK + 1, (unsigned long long)taking(s));
        return NULL;
    }
    if (data->hops <= UINT16_MAX && data->left < data->hops)
        m = plan_arrival(s->plan, data->step, (uint8_t)port, (uint16_t)data->hops,
                         (uint16_t)data->left);
    if (m == NULL)
        (void)error_set(e, ERROR_PROTOCOL,
                        "no message of step %u with %u hops, %u of them to go, is expected here",
                        data->step, data->hops, data->left);
    return m;
}

static int stepped_frame(struct engine *engine, unsigned port, const Peer__Head *head,
                         const struct extents *body, uint32_t body_length, struct error *e)
{
    struct stepped *s = of(engine);

    if (head->kind_case != PEER__HEAD__KIND_STEPPED_DATA)
        return error_set(e, ERROR_PROTOCOL, "data without a step, but the exchange runs in steps");
    const Peer__SteppedData *data = head->stepped_data;
    const struct plan_message *m = find_arrival(s, port, data, e);
    uint64_t round = taking(s);
    uint32_t begun = 0;

    if (m == NULL)
        return -1;
    uint32_t index = (uint32_t)(m - s->plan->arrival);
    struct incoming *in = &s->incoming[index];
    bool first = !in->started;

    if (is_complete(s, index))
        return error_set(e, ERROR_PROTOCOL, "the message of step %u came twice", m->step);
    in->started = true;
    if (m->left == 0 && first && ++s->ends > s->base.counts.most_ends)
        s->base.counts.most_ends = s->ends;
    if (take_in(s, m, in, round, data, body, body_length, &begun, e) != 0)
        return -1;
    s->base.counts.port[port].rx_bytes += body_length;
    if (m->left > 0) {
        count_channel(s, m->step, torus_port_opposite(port), begun, first);
        (void)relay(s, port, data, body, body_length);
    }
    if (is_complete(s, index)) {
        s->arrivals_left--;
        if (m->left == 0) {
            s->ends--;
            s->takes_left[m->step]--;
            clear_next(s);
        }
        advance(s);
    }
    return 0;
}

static int stepped_clear(struct engine *engine, unsigned port, const Peer__Clear *clear,
                         struct error *e)
{
    struct stepped *s = of(engine);
    const struct plan *plan = s->plan;

    if (clear->left >= clear->hops ||
        (clear->round & ENGINE_ROUND_MASK) != (taking(s) & ENGINE_ROUND_MASK))
        return error_set(e, ERROR_PROTOCOL, "word of a leg that cannot be");
    if (clear->left >
        0) { /* only where the leg itself comes through, or it might go round for ever */
        unsigned onward = torus_port_opposite(port);
        Peer__Clear next = *clear;
        if (clear->hops > UINT16_MAX ||
            plan_arrival(plan, clear->step, (uint8_t)onward, (uint16_t)clear->hops,
                         (uint16_t)(clear->hops - clear->left)) == NULL)
            return error_set(e, ERROR_PROTOCOL, "no leg of step %u with %u hops passes here",
                             clear->step, clear->hops);
        next.left--;
        send_clear(s, onward, &next);
        return 0;
    }
    for (uint32_t i = 0; i < plan->sends; i++) {
        const struct plan_message *m = &plan->send[i];
        if (m->step != clear->step || m->port != port || m->hops != clear->hops)
            continue;
        s->cleared[i] = taking(s) + 1;
        router_wake(s->base.set.router, port);
        return 0;
    }
    return error_set(e, ERROR_PROTOCOL, "no leg of step %u with %u hops starts here", clear->step,
                     clear->hops);
}

/* --- going out --- */

/* Bytes of a block that leaves in this round. */
static uint32_t leaving_length(const struct stepped *s, const struct plan_block *b,
                               const struct part *part)
{
    const struct slot *slot = slot_of_send(s, b);

    if (slot != NULL)
        return slot->length;
    if (s->base.set.uniform)
        return part->stride;
    uint32_t whole = engine_part(
        &s->base, s->base.set.source->ops->size(s->base.set.source, b->destination), s->round);
    uint64_t before = (uint64_t)part->stride * b->segment;
    if (whole <= before)
        return 0;
    return whole - before < part->stride ? (uint32_t)(whole - before) : part->stride;
}

/* Small blocks become one run of bytes, whose frame has one extent. Returns `length`, 0 if there is
 * no memory. */
static uint32_t append_copy(struct stepped *s, const uint8_t *data, uint32_t length,
                            struct outgoing *frame)
{
    struct extent room;
    uint8_t *at = slab_writer_take(&s->body, router_pool(s->base.set.router), length, &room);

    if (at == NULL) {
        (void)engine_no_memory(&s->base);
        return 0;
    }
    memcpy(at, data, length);
    if (extents_add(&frame->body, room.slab, at, length) != 0) {
        (void)engine_no_memory(&s->base);
        length = 0;
    }
    slab_unref(room.slab);
    return length;
}

/* Moves up to `most` bytes of the block into the frame's body. Returns how many; 0 if the source
 * has none yet, or after a failure. */
static uint32_t move_bytes(struct stepped *s, struct sender *sender, const struct plan_block *b,
                           const struct part *part, uint32_t most, struct outgoing *frame)
{
    const struct slot *slot = slot_of_send(s, b);
    struct extent piece;
    struct error e;
    int result;

    if (slot != NULL && s->copies != NULL)
        return append_copy(s, copy_of(s, b) + sender->offset, most, frame);
    if (slot != NULL) {
        if (extents_take(&slot->bytes, &sender->cursor, most, &piece) == 0)
            return 0;
        if (extents_add(&frame->body, piece.slab, piece.data, piece.length) != 0) {
            (void)engine_no_memory(&s->base);
            return 0;
        }
        return piece.length;
    }
    result = s->base.set.source->ops->read(s->base.set.source, b->destination,
                                           segment_start(part, b->segment) + sender->offset, most,
                                           &piece, &e);
    if (result < 0)
        (void)engine_fail(&s->base, &e);
    sender->stalled = result == 0;
    if (result <= 0)
        return 0;
    if (s->copies != NULL)
        piece.length = append_copy(s, piece.data, piece.length, frame);
    else if (extents_add(&frame->body, piece.slab, piece.data, piece.length) != 0)
        (void)engine_no_memory(&s->base);
    slab_unref(piece.slab);
    return piece.length;
}

/* Fills the body from the message's blocks. Returns how many blocks begin in it; their sizes go to
 * `sizes`. */
static uint32_t fill_body(struct stepped *s, struct sender *sender, const struct plan_message *m,
                          struct outgoing *frame, uint32_t *sizes)
{
    const struct part part = part_of(s, s->round);
    uint32_t begun = 0;

    while (sender->block < m->blocks && frame->body.count < OUTGOING_MAX_EXTENTS) {
        const struct plan_block *b = &s->plan->block[m->first + sender->block];
        uint32_t length = leaving_length(s, b, &part);
        bool begins = sender->offset == 0;
        uint32_t room = FRAME_FILL - frame->body_length;

        if (begins && begun == BLOCKS_A_FRAME && !s->base.set.uniform)
            break;
        if (length > sender->offset) {
            uint32_t want = length - sender->offset < room ? length - sender->offset : room;
            uint32_t n = want > 0 ? move_bytes(s, sender, b, &part, want, frame) : 0;
            if (n == 0)
                break;
            sender->offset += n;
            frame->body_length += n;
        }
        if (begins) {
            if (!s->base.set.uniform)
                sizes[begun] = length;
            begun++;
        }
        if (sender->offset < length)
            continue;
        struct slot *slot = slot_of_send(s, b);
        if (slot != NULL && --slot->sends_left == 0)
            extents_clear(&slot->bytes);
        sender->block++;
        sender->offset = 0;
        sender->cursor = (struct extent_cursor){0};
    }
    return begun;
}

static struct outgoing *stepped_next(struct engine *engine, unsigned port)
{
    struct stepped *s = of(engine);
    struct sender *sender = &s->sender[port];
    uint32_t sizes[BLOCKS_A_FRAME];
    Peer__SteppedData data = PEER__STEPPED_DATA__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    if (sender->current == sender->active || sender->stalled ||
        s->base.failure.code != ERROR_NONE || engine_has_lost(&s->base, port))
        return NULL;
    uint32_t index = sender->message[sender->current];
    const struct plan_message *m = &s->plan->send[index];
    if (s->base.set.one_port && s->cleared[index] != s->round + 1)
        return NULL;
    struct outgoing *frame = outgoing_new(router_outgoing(s->base.set.router));
    if (frame == NULL) {
        (void)engine_no_memory(&s->base);
        return NULL;
    }
    uint32_t begun = fill_body(s, sender, m, frame, sizes);
    bool complete = sender->block == m->blocks;
    if (s->base.failure.code != ERROR_NONE ||
        (frame->body_length == 0 && begun == 0 && !complete)) {
        outgoing_free(router_outgoing(s->base.set.router), frame);
        return NULL;
    }
    data.exchange = s->base.set.handle;
    data.round = (uint32_t)(s->round & ENGINE_ROUND_MASK);
    data.step = m->step;
    data.hops = m->hops;
    data.left = m->hops - 1u;
    frame->in_passing = data.left > 0;
    if (!s->base.set.uniform) {
        data.n_sizes = begun;
        data.sizes = sizes;
    }
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &data;
    if (outgoing_set_head(frame, &head) != 0) {
        outgoing_free(router_outgoing(s->base.set.router), frame);
        (void)engine_no_memory(&s->base);
        return NULL;
    }
    count_channel(s, m->step, port, begun, !sender->started);
    s->base.counts.port[port].combined_messages += !sender->started;
    s->base.counts.port[port].tx_bytes += frame->body_length;
    if (!sender->started && ++s->starts > s->base.counts.most_starts)
        s->base.counts.most_starts = s->starts;
    sender->started = true;
    if (complete) {
        sender->current++;
        sender->block = 0;
        sender->started = false;
        s->starts--;
        s->sends_left--;
        s->step_sends_left[m->step]--;
        if (s->sends_left == 0 || s->base.set.one_port)
            advance(s);
    }
    return frame;
}

static void stepped_wake(struct engine *engine)
{
    struct stepped *s = of(engine);

    for (unsigned port = 0; port < s->ports; port++) {
        if (!s->sender[port].stalled)
            continue;
        s->sender[port].stalled = false;
        router_wake(s->base.set.router, port);
    }
    advance(s);
}

static void stepped_describe(const struct engine *engine, char *text, size_t size)
{
    const struct stepped *s = (const struct stepped *)engine;
    const struct plan *plan = s->plan;

    for (uint32_t i = 0; i < plan->arrivals && !s->round_over; i++) {
        const struct plan_message *m = &plan->arrival[i];
        char name[TORUS_PORT_NAME_SIZE];
        if (is_complete(s, i))
            continue;
        (void)snprintf(text, size, "step %u of %u, waiting for the message of step %u on port %s",
                       s->step + 1, plan->steps, m->step + 1, torus_port_name(m->port, name));
        return;
    }
    if (s->sends_left > 0)
        (void)snprintf(text, size, "step %u of %u, still sending", s->step, plan->steps);
    else
        (void)snprintf(text, size, "all sent and taken in");
}

static const struct engine_ops stepped_ops = {
    .free = stepped_free,
    .admit = stepped_admit,
    .frame = stepped_frame,
    .clear = stepped_clear,
    .next = stepped_next,
    .wake = stepped_wake,
    .describe = stepped_describe,
};

struct engine *stepped_new(const struct engine_setup *setup, const struct plan *plan,
                           struct error *e)
{
    struct stepped *s = calloc(1, sizeof *s);
    size_t steps = (size_t)plan->steps + 1;

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory for an exchange");
        return NULL;
    }
    s->base.ops = &stepped_ops;
    s->base.set = *setup;
    s->plan = plan;
    s->ports = torus_ports(router_torus(setup->router));
    s->base.counts.steps = plan->steps;
    s->step_sends_left = calloc(steps, sizeof *s->step_sends_left);
    s->takes_left = calloc(steps, sizeof *s->takes_left);
    s->cleared = calloc((size_t)plan->sends + 1, sizeof *s->cleared);
    s->incoming = calloc((size_t)plan->arrivals + 1, sizeof *s->incoming);
    s->slot = calloc((size_t)plan->slots + 1, sizeof *s->slot);
    s->copy_stride = setup->segment_bytes / setup->segments;
    bool small = setup->uniform && !setup->gather && s->copy_stride <= COPIED_MOST;
    if (small)
        s->copies = malloc((size_t)plan->slots * s->copy_stride + 1);
    s->channel_blocks = calloc(steps * s->ports, sizeof *s->channel_blocks);
    s->channel_messages = calloc(steps * s->ports, sizeof *s->channel_messages);
    s->base.counts.step_blocks = calloc(steps, sizeof *s->base.counts.step_blocks);
    s->base.counts.step_messages = calloc(steps, sizeof *s->base.counts.step_messages);
    if (s->step_sends_left == NULL || s->takes_left == NULL || s->cleared == NULL ||
        s->incoming == NULL || s->slot == NULL || (small && s->copies == NULL) ||
        s->channel_blocks == NULL || s->channel_messages == NULL ||
        s->base.counts.step_blocks == NULL || s->base.counts.step_messages == NULL ||
        lay_out_senders(s) != 0) {
        (void)error_set(e, ERROR_MEMORY, "no memory for an exchange");
        stepped_free(&s->base);
        return NULL;
    }
    count_sends(s);
    expect_arrivals(s);
    return &s->base;
}
