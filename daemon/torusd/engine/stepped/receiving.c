#include "daemon/torusd/engine/stepped/receiving.h"

#include "daemon/torusd/engine/stepped/clears.h"
#include "daemon/torusd/engine/stepped/relaying.h"
#include "daemon/torusd/engine/stepped/steps.h"
#include "proto/text.h"

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

int stepped_frame(struct engine *engine, unsigned port, const struct peer_message *message,
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
