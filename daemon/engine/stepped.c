#include "daemon/engine/stepped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/frame_buffer.h"
#include "daemon/schedule/predict/relay.h"
#include "proto/text.h"

#define BLOCKS_A_FRAME 512u /* that begin in it; bounds the head where it has their sizes */
/* Pieces with digests that end in a frame: one of them may have begun before it. */
#define DIGESTS_A_FRAME (FRAME_MAX_BODY / PIECE_DIGEST_LEAST + 1u)
#define NONE UINT32_MAX

/* How far a combined message has come in. */
struct incoming {
    uint32_t begun;     /* blocks */
    uint32_t remaining; /* bytes of the current block that are still to come */
    uint32_t offset;    /* bytes of it that have come */
    bool started;
    struct piece_mark mark; /* of it, if it is delivered here and pieces have digests */
};

/* Where the messages that leave by one port stand; they leave in the plan's order. */
struct sender {
    const uint32_t *message; /* indices into plan.send */
    uint32_t count;
    uint32_t active;         /* how many of them may leave: their step has come */
    uint32_t current;        /* the one that is leaving */
    uint32_t block;          /* the one of its blocks that is leaving, */
    uint32_t offset;         /* the bytes of it that have left, */
    struct hold_place place; /* and where they end, for a block that others send, too, */
    struct piece_mark mark;  /* or its digest, if it comes from the source */
    bool started;            /* something of the current message has left */
    bool stalled;            /* the source was asked and had nothing yet */
};

/* A block in transit. In an allgather, behind the plan's slots: the segments of our own. */
struct slot {
    struct hold hold;
    struct piece_mark mark; /* its digest, if pieces have digests */
    uint32_t length;
    uint32_t sends; /* messages by which it leaves in each round */
    uint32_t sends_left;
};

struct stepped {
    struct engine base;
    const struct plan *plan;
    struct cut cut;
    struct cargo cargo;
    unsigned ports;
    uint64_t round;
    struct cut_round leaving; /* the same round's */
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
    uint8_t *room; /* for the slots' cargo */
    struct sender sender[TORUS_MAX_PORTS];
    uint32_t *sender_messages;
    struct own_block own;
    uint32_t *channel_blocks; /* [step * ports + port], this round */
    uint32_t *channel_messages;
    uint64_t delivered; /* blocks from others, this round */
    bool all_delivered;
};

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
    return s->base.set.gather ? &s->slot[s->plan->slots + b->segment] : NULL;
}

/* What of a block of `length` bytes moves in this round. */
static struct block_piece piece_of(const struct stepped *s, const struct plan_block *b,
                                   const struct cut_round *cut, uint32_t length)
{
    return (struct block_piece){.source = b->source,
                                .destination = s->base.set.gather ? b->source : b->destination,
                                .begin = cut_begin(cut, b->segment),
                                .length = length};
}

/* `mark`, unless pieces have no digests. */
static struct piece_mark *marked(const struct stepped *s, struct piece_mark *mark)
{
    return s->base.set.digests ? mark : NULL;
}

static bool has_digest(const struct stepped *s, uint32_t length)
{
    return s->base.set.digests && piece_has_digest(length);
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
    cargo_close(&s->cargo);
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

/* In an allgather our block for ourselves is the one for all: read once, it stays until it has left
 * by every port. */
static void deliver_shared(struct stepped *s)
{
    const struct cut_round *cut = &s->leaving;
    struct slot *slots = &s->slot[s->plan->slots];
    uint32_t me = s->plan->rank;
    uint64_t size = s->base.set.source->ops->size(s->base.set.source, me);
    uint64_t end = cut->begin + cut_whole(cut, size);

    for (uint32_t i = 0; s->own.at == cut->begin && i < s->base.set.segments; i++)
        open_slot(&slots[i], cut_length(cut, size, i));
    while (s->own.at < end) {
        uint32_t segment = (uint32_t)((s->own.at - cut->begin) / cut->stride);
        uint32_t offset = (uint32_t)(s->own.at - cut_begin(cut, segment));
        const struct block_piece piece = {me, me, cut_begin(cut, segment), slots[segment].length};
        struct extent bytes;
        if (!cargo_read_own(&s->cargo, &piece, offset, marked(s, &slots[segment].mark),
                            piece.length - offset, &bytes))
            return;
        if (slots[segment].sends > 0)
            cargo_put(&s->cargo, &slots[segment].hold, offset, &bytes);
        s->own.at += bytes.length;
        slab_unref(bytes.slab);
    }
    s->own.delivered = s->base.failure.code == ERROR_NONE;
}

static void deliver_own(struct stepped *s)
{
    if (s->base.set.gather)
        deliver_shared(s);
    else
        cargo_deliver_own(&s->cargo, s->plan->rank, &s->leaving, &s->own);
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
        router_send(s->base.set.router, engine_port(&s->base, port), &head);
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
        engine_wake_port(&s->base, port);
    }
}

/* One-port: a step is over when what is sent in it has left, too. */
static bool step_over(const struct stepped *s)
{
    return s->takes_left[s->step] == 0 &&
           (!s->base.set.one_port || s->step_sends_left[s->step] == 0);
}

/* Runs the steps as far as what has arrived allows. */
static void advance(struct stepped *s)
{
    const struct plan *plan = s->plan;

    if (!s->started || s->round_over)
        return;
    if (s->base.set.gather && !s->own.delivered && s->base.failure.code == ERROR_NONE)
        deliver_own(s);
    if (s->base.set.gather && !s->own.delivered)
        return;
    activate(s);
    while (s->step < plan->steps && step_over(s)) {
        s->step++;
        activate(s);
    }
    if (!s->own.delivered && s->base.failure.code == ERROR_NONE)
        deliver_own(s);
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
    s->leaving = cut_round(&s->cut, engine_round(&s->base, round));
    s->own = (struct own_block){.at = s->leaving.begin, .delivered = s->base.set.idle};
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

/* Sends a frame straight on. */
static void relay(struct stepped *s, unsigned in, const Peer__SteppedData *data,
                  const struct extents *body, uint32_t body_length)
{
    unsigned out = torus_port_opposite(in);
    struct outgoing *frame = engine_has_lost(&s->base, out) ? NULL : cargo_frame(&s->cargo);
    Peer__SteppedData onward = *data;
    Peer__Head head = PEER__HEAD__INIT;

    if (frame == NULL)
        return;
    onward.left--;
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &onward;
    frame->body_length = body_length;
    frame->in_passing = onward.left > 0;
    for (uint32_t i = 0; i < body->count; i++)
        cargo_pass_on(&s->cargo, frame, &body->item[i]);
    frame = cargo_ship(&s->cargo, out, frame, &head, true);
    if (frame != NULL)
        router_relay(s->base.set.router, engine_port(&s->base, out), frame);
}

/* Whether a block that comes in is for us. In an exchange one for us may go on as well, and come
 * back (imaginary nodes). */
static bool stays_here(const struct stepped *s, const struct plan_block *b)
{
    return b->slot == PLAN_NO_SLOT || s->base.set.gather;
}

/* A block of `length` bytes begins. */
static void begin_block(struct stepped *s, const struct plan_block *b, uint32_t length,
                        const struct cut_round *cut)
{
    if (b->slot != PLAN_NO_SLOT)
        open_slot(&s->slot[b->slot], length);
    if (!stays_here(s, b))
        return;
    if (length == 0)
        cargo_deliver_nothing(&s->cargo, b->source, cut_begin(cut, b->segment));
    s->delivered += b->segment == 0;
}

/* A frame that is being taken in. */
struct arrival {
    const struct plan_message *message;
    struct incoming *in;
    struct cut_round cut;
    const Peer__SteppedData *data;
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t have;           /* bytes of the body that are left */
    uint32_t sizes, digests; /* how many of the head's have been used */
    uint32_t begun;          /* blocks that begin in it */
};

static bool is_relayed(const struct arrival *a)
{
    return a->message->left > 0;
}

/* `bytes` continue a block, of which in->offset have come. */
static void put(struct stepped *s, struct arrival *a, const struct plan_block *b,
                const struct extent *bytes)
{
    struct incoming *in = a->in;

    if (s->base.failure.code != ERROR_NONE)
        return;
    if (b->slot != PLAN_NO_SLOT)
        cargo_put(&s->cargo, &s->slot[b->slot].hold, in->offset, bytes);
    if (stays_here(s, b)) {
        const struct block_piece piece = piece_of(s, b, &a->cut, in->offset + in->remaining);
        (void)cargo_deliver(&s->cargo, &piece, in->offset, marked(s, &in->mark), bytes);
    }
}

/* A block ends in this frame. Returns 0, or -1 with *e. */
static int end_block(struct stepped *s, struct arrival *a, struct error *e)
{
    struct incoming *in = a->in;

    if (!has_digest(s, in->offset))
        return 0;
    if (a->digests == a->data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "a block of %u %s without its digest", in->offset,
                         text_plural(in->offset, "byte", "bytes"));
    uint64_t digest = a->data->digests[a->digests++];
    if (is_relayed(a))
        return 0;
    const struct plan_block *b = &s->plan->block[a->message->first + in->begun - 1];
    if (b->slot != PLAN_NO_SLOT)
        s->slot[b->slot].mark.digest = digest;
    if (stays_here(s, b)) {
        const struct block_piece piece = piece_of(s, b, &a->cut, in->offset);
        (void)cargo_compare(&s->cargo, &piece, &in->mark, digest);
    }
    return 0;
}

/* Bytes of the block that was begun last. Those of a relayed message are only counted. Returns 0, or -1
 * with *e. */
static int take_bytes(struct stepped *s, struct arrival *a, struct error *e)
{
    struct incoming *in = a->in;

    while (in->remaining > 0 && a->have > 0) {
        uint32_t n = in->remaining < a->have ? in->remaining : a->have;
        if (!is_relayed(a)) {
            struct extent bytes;
            n = extents_take(a->body, &a->cursor, n, &bytes);
            put(s, a, &s->plan->block[a->message->first + in->begun - 1], &bytes);
        }
        in->remaining -= n;
        in->offset += n;
        a->have -= n;
        if (in->remaining == 0)
            return end_block(s, a, e);
    }
    return 0;
}

/* How long the message's next block is. Returns 1, 0 if it does not begin in this frame, or -1 with
 * *e. */
static int next_length(const struct stepped *s, struct arrival *a, uint32_t *length,
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
        return error_set(e, ERROR_PROTOCOL, "a piece of %u %s, the longest has %u", *length,
                         text_plural(*length, "byte", "bytes"), a->cut.stride);
    return 1;
}

/* Sorts the body's bytes into blocks. */
static int take_in(struct stepped *s, struct arrival *a, struct error *e)
{
    struct incoming *in = a->in;

    for (;;) {
        uint32_t length;
        if (take_bytes(s, a, e) != 0)
            return -1;
        if (in->remaining > 0 || in->begun == a->message->blocks)
            break; /* the rest comes with the next frame, or there is none */
        int begins = next_length(s, a, &length, e);
        if (begins < 0)
            return -1;
        if (begins == 0)
            break;
        if (!is_relayed(a) && s->base.failure.code == ERROR_NONE)
            begin_block(s, &s->plan->block[a->message->first + in->begun], length, &a->cut);
        in->remaining = length;
        in->offset = 0;
        in->begun++;
        a->begun++;
    }
    if (a->have > 0)
        return error_set(e, ERROR_PROTOCOL, "%u %s more than the message's blocks have", a->have,
                         text_plural(a->have, "byte", "bytes"));
    if (a->sizes < a->data->n_sizes)
        return error_set(e, ERROR_PROTOCOL, "%zu %s more than blocks begin in it",
                         a->data->n_sizes - a->sizes,
                         text_plural(a->data->n_sizes - a->sizes, "size", "sizes"));
    if (a->digests < a->data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "%zu %s more than blocks end in it",
                         a->data->n_digests - a->digests,
                         text_plural(a->data->n_digests - a->digests, "digest", "digests"));
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
                        "no message of step %u with %u %s, %u to go, is expected here", data->step,
                        data->hops, text_plural(data->hops, "hop", "hops"), data->left);
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
    if (m == NULL)
        return -1;
    uint32_t index = (uint32_t)(m - s->plan->arrival);
    struct incoming *in = &s->incoming[index];
    struct arrival a = {.message = m, .in = in, .data = data, .body = body, .have = body_length};
    bool first = !in->started;

    if (is_complete(s, index))
        return error_set(e, ERROR_PROTOCOL, "the message of step %u came twice", m->step);
    in->started = true;
    if (m->left == 0 && first && ++s->ends > s->base.counts.most_ends)
        s->base.counts.most_ends = s->ends;
    a.cut = cut_round(&s->cut, engine_round(&s->base, taking(s)));
    if (take_in(s, &a, e) != 0)
        return -1;
    s->base.counts.port[port].rx_bytes += body_length;
    if (a.begun == 0 && (in->remaining > 0 || body_length == 0) &&
        engine_crumb(&s->base, port, body_length, e) != 0)
        return -1;
    if (m->left > 0) {
        count_channel(s, m->step, torus_port_opposite(port), a.begun, first);
        relay(s, port, data, body, body_length);
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

/* Passes the clear on to where the leg comes from; only where the leg itself comes through, or the
 * clear might go round for ever. */
static int pass_clear(struct stepped *s, unsigned port, const Peer__Clear *clear, struct error *e)
{
    unsigned onward = torus_port_opposite(port);
    Peer__Clear next = *clear;

    if (clear->hops > UINT16_MAX ||
        plan_arrival(s->plan, clear->step, (uint8_t)onward, (uint16_t)clear->hops,
                     (uint16_t)(clear->hops - clear->left)) == NULL)
        return error_set(e, ERROR_PROTOCOL, "no leg of step %u with %u %s passes here", clear->step,
                         clear->hops, text_plural(clear->hops, "hop", "hops"));
    next.left--;
    send_clear(s, onward, &next);
    return 0;
}

static int stepped_clear(struct engine *engine, unsigned port, const Peer__Clear *clear,
                         struct error *e)
{
    struct stepped *s = of(engine);
    const struct plan *plan = s->plan;

    if (clear->left >= clear->hops)
        return error_set(e, ERROR_PROTOCOL, "a clear with %u of %u %s to go", clear->left,
                         clear->hops, text_plural(clear->hops, "hop", "hops"));
    if ((clear->round & ENGINE_ROUND_MASK) != (taking(s) & ENGINE_ROUND_MASK))
        return error_set(e, ERROR_PROTOCOL, "a clear for round %u (modulo %u) in round %llu",
                         clear->round, ENGINE_ROUND_MASK + 1, (unsigned long long)taking(s));
    if (clear->left > 0)
        return pass_clear(s, port, clear, e);
    for (uint32_t i = 0; i < plan->sends; i++) {
        const struct plan_message *m = &plan->send[i];
        if (m->step != clear->step || m->port != port || m->hops != clear->hops)
            continue;
        s->cleared[i] = taking(s) + 1;
        engine_wake_port(&s->base, port);
        return 0;
    }
    return error_set(e, ERROR_PROTOCOL, "no leg of step %u with %u %s starts here", clear->step,
                     clear->hops, text_plural(clear->hops, "hop", "hops"));
}

/* --- going out --- */

/* Bytes of a block that leaves in this round. */
static uint32_t leaving_length(const struct stepped *s, const struct plan_block *b)
{
    const struct slot *slot = slot_of_send(s, b);
    struct source *source = s->base.set.source;

    if (slot != NULL)
        return slot->length;
    if (s->base.set.uniform)
        return s->leaving.stride;
    return cut_length(&s->leaving, source->ops->size(source, b->destination), b->segment);
}

/* Moves up to `most` bytes of the block, which has `length`, into the frame. Returns how many. */
static uint32_t move_bytes(struct stepped *s, struct sender *sender, const struct plan_block *b,
                           uint32_t length, uint32_t most, struct outgoing *frame)
{
    struct slot *slot = slot_of_send(s, b);

    if (slot != NULL)
        return cargo_load(&s->cargo, &slot->hold, sender->offset,
                          slot->sends > 1 ? &sender->place : NULL, most, frame);
    const struct block_piece piece = piece_of(s, b, &s->leaving, length);
    uint32_t n =
        cargo_load_own(&s->cargo, &piece, sender->offset, marked(s, &sender->mark), most, frame);
    sender->stalled = n < most && frame->body.count < OUTGOING_MAX_EXTENTS;
    return n;
}

/* The block has left: on to the next one. */
static void next_block(struct stepped *s, struct sender *sender, const struct plan_block *b)
{
    struct slot *slot = slot_of_send(s, b);

    if (slot != NULL && --slot->sends_left == 0)
        cargo_drop(&s->cargo, &slot->hold);
    sender->block++;
    sender->offset = 0;
    sender->place = (struct hold_place){0};
}

/* Bytes of a frame's body. Only where relays pass the frame on it matters when it has come in. */
static uint32_t frame_size(const struct stepped *s, const struct plan_message *m)
{
    if (m->hops == 1 || s->base.set.relayed == 0)
        return RELAY_FRAME_MOST;
    return relay_frame_of(s->base.set.relayed, (uint64_t)m->blocks * s->leaving.stride);
}

/* What goes into a frame's head. */
struct filling {
    uint32_t size[BLOCKS_A_FRAME]; /* of blocks that begin in it, if they differ */
    uint32_t digests;
    uint64_t digest[DIGESTS_A_FRAME];
};

/* Fills the body from the message's blocks. Returns how many blocks begin in it. */
static uint32_t fill_body(struct stepped *s, struct sender *sender, const struct plan_message *m,
                          struct outgoing *frame, struct filling *filling)
{
    uint32_t begun = 0, most = frame_size(s, m);

    filling->digests = 0;
    while (sender->block < m->blocks && frame->body.count < OUTGOING_MAX_EXTENTS) {
        const struct plan_block *b = &s->plan->block[m->first + sender->block];
        uint32_t length = leaving_length(s, b);
        bool begins = sender->offset == 0;

        if (begins && begun == BLOCKS_A_FRAME && !s->base.set.uniform)
            break;
        if (length > sender->offset) {
            uint32_t want = cargo_fits(frame, most, length - sender->offset);
            uint32_t n = want > 0 ? move_bytes(s, sender, b, length, want, frame) : 0;
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
            break; /* the frame is full, or the source has no more yet */
        if (has_digest(s, length)) {
            const struct slot *slot = slot_of_send(s, b);
            filling->digest[filling->digests++] =
                slot != NULL ? slot->mark.digest : sender->mark.digest;
        }
        next_block(s, sender, b);
    }
    return begun;
}

/* The index in the plan of the message that is to leave by the port now, or NONE. */
static uint32_t current_send(const struct stepped *s, unsigned port)
{
    const struct sender *sender = &s->sender[port];

    if (sender->current == sender->active || sender->stalled ||
        s->base.failure.code != ERROR_NONE || engine_has_lost(&s->base, port))
        return NONE;
    uint32_t index = sender->message[sender->current];
    return s->base.set.one_port && s->cleared[index] != s->round + 1 ? NONE : index;
}

/* A frame with `begun` of the message's blocks leaves; if it is the last one, on to the next
 * message. */
static void note_sent(struct stepped *s, struct sender *sender, const struct plan_message *m,
                      uint32_t begun)
{
    bool first = !sender->started;

    count_channel(s, m->step, m->port, begun, first);
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
        advance(s);
}

static struct outgoing *stepped_next(struct engine *engine, unsigned port)
{
    struct stepped *s = of(engine);
    struct sender *sender = &s->sender[port];
    uint32_t index = current_send(s, port);
    struct outgoing *frame = index != NONE ? cargo_frame(&s->cargo) : NULL;
    struct filling filling;
    Peer__SteppedData data = PEER__STEPPED_DATA__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    if (frame == NULL)
        return NULL;
    const struct plan_message *m = &s->plan->send[index];
    uint32_t begun = fill_body(s, sender, m, frame, &filling);
    data.exchange = s->base.set.handle;
    data.round = (uint32_t)(s->round & ENGINE_ROUND_MASK);
    data.step = m->step;
    data.hops = m->hops;
    data.left = m->hops - 1u;
    data.call = engine_call(&s->base);
    if (!s->base.set.uniform) {
        data.n_sizes = begun;
        data.sizes = filling.size;
    }
    data.n_digests = filling.digests;
    data.digests = filling.digest;
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &data;
    frame->in_passing = data.left > 0;
    frame = cargo_ship(&s->cargo, port, frame, &head,
                       frame->body_length > 0 || begun > 0 || sender->block == m->blocks);
    if (frame != NULL)
        note_sent(s, sender, m, begun);
    return frame;
}

static void stepped_wake(struct engine *engine)
{
    struct stepped *s = of(engine);

    for (unsigned port = 0; port < s->ports; port++) {
        if (!s->sender[port].stalled)
            continue;
        s->sender[port].stalled = false;
        engine_wake_port(&s->base, port);
    }
    advance(s);
}

static void stepped_describe(const struct engine *engine, char *text, size_t size)
{
    const struct stepped *s = (const struct stepped *)engine;
    const struct plan *plan = s->plan;
    /* After the last step something may still be to be relayed. */
    uint32_t step = s->step < plan->steps ? s->step + 1 : plan->steps;

    for (uint32_t i = 0; i < plan->arrivals && !s->round_over; i++) {
        const struct plan_message *m = &plan->arrival[i];
        char name[TORUS_PORT_NAME_SIZE];
        if (is_complete(s, i))
            continue;
        (void)snprintf(text, size,
                       "step %u of %u, waiting for the message of step %u on port %s to node %u",
                       step, plan->steps, m->step + 1, torus_port_name(m->port, name),
                       engine_neighbour(engine, m->port));
        return;
    }
    if (s->sends_left > 0)
        (void)snprintf(text, size, "step %u of %u, still sending", step, plan->steps);
    else
        (void)snprintf(text, size, "all sent and received");
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

static void *array(size_t count, size_t size)
{
    return calloc(count + 1, size); /* never 0 bytes */
}

/* All that the plan determines. Returns 0, or -1 if there is no memory. */
static int allocate(struct stepped *s)
{
    const struct plan *plan = s->plan;
    struct engine_counts *counts = &s->base.counts;
    size_t channels = (size_t)plan->steps * s->ports;
    size_t slots = (size_t)plan->slots + (s->base.set.gather ? s->base.set.segments : 0);

    s->step_sends_left = array(plan->steps, sizeof *s->step_sends_left);
    s->takes_left = array(plan->steps, sizeof *s->takes_left);
    s->cleared = array(plan->sends, sizeof *s->cleared);
    s->incoming = array(plan->arrivals, sizeof *s->incoming);
    s->slot = array(slots, sizeof *s->slot);
    s->channel_blocks = array(channels, sizeof *s->channel_blocks);
    s->channel_messages = array(channels, sizeof *s->channel_messages);
    counts->step_blocks = array(plan->steps, sizeof *counts->step_blocks);
    counts->step_messages = array(plan->steps, sizeof *counts->step_messages);
    if (s->step_sends_left == NULL || s->takes_left == NULL || s->cleared == NULL ||
        s->incoming == NULL || s->slot == NULL || s->channel_blocks == NULL ||
        s->channel_messages == NULL || counts->step_blocks == NULL ||
        counts->step_messages == NULL || cargo_room(&s->cargo, slots, &s->room) != 0)
        return -1;
    for (uint32_t i = 0; i < slots; i++)
        s->slot[i].hold = cargo_hold(&s->cargo, s->room, i);
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
    cargo_init(&s->cargo, &s->base, cut_longest(&s->cut));
    if (allocate(s) != 0) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        stepped_free(&s->base);
        return NULL;
    }
    count_sends(s);
    expect_arrivals(s);
    return &s->base;
}
