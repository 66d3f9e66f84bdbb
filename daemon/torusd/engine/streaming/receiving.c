#include "daemon/torusd/engine/streaming/receiving.h"

#include "daemon/torusd/engine/streaming/pieces.h"
#include "daemon/torusd/engine/streaming/rounds.h"
#include "proto/text.h"

/* Takes bytes of a piece, which go to the sink or wait to leave. If the sink fails, only bytes that it has
 * accepted count as arrived. */
static void take_piece_bytes(struct streaming *s, struct streaming_round *r, uint32_t index,
                             uint32_t length, const struct extents *body,
                             struct extent_cursor *cursor)
{
    struct streaming_flow *flow = &r->flow[index];
    bool here = s->passages->passage[index].out == PASSAGE_HERE;
    struct block_piece piece = {0};

    if (here)
        piece = streaming_piece(s, r, index);
    while (length > 0) {
        struct extent bytes;
        uint32_t n = extents_take(body, cursor, length, &bytes);
        if (!here)
            frame_buffer_put(&s->buffer, &flow->hold, flow->arrived, &bytes);
        else if (frame_buffer_deliver(&s->buffer, &piece, flow->arrived, streaming_mark(r, index),
                                      &bytes) != 0)
            return;
        if (s->base.set.gather)
            streaming_share_bytes(s, r, index, flow->arrived, &bytes);
        flow->arrived += n;
        length -= n;
    }
}

/* A frame that is being processed. */
struct streaming_arrival {
    const struct peer_streamed_data *data;
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t have;         /* bytes of the body that are not processed yet */
    size_t sizes, digests; /* how many entries of the head have been used */
};

/* Checks the next piece that a frame names, and sets *length to its bytes in this frame, and *digest if the
 * piece ends there and has one. */
static int begin_arriving_piece(struct streaming *s, struct streaming_round *r, unsigned port,
                                uint32_t place, struct streaming_arrival *a, uint32_t *index,
                                uint32_t *length, uint64_t *digest, struct error *e)
{
    if (place >= s->passages->arrivals[port])
        return error_set(e, ERROR_PROTOCOL, "no piece %u: this channel has %u", place,
                         s->passages->arrivals[port]);
    *index = s->passages->arrival[port][place];
    struct streaming_flow *flow = &r->flow[*index];
    bool first = !flow->begun;
    if (first) {
        if (a->sizes == a->data->n_sizes)
            return error_set(e, ERROR_PROTOCOL, "piece %u without a size", place);
        flow->length = a->data->sizes[a->sizes++];
        if (flow->length > r->cut.stride)
            return error_set(e, ERROR_PROTOCOL, "a piece of %u %s, but no piece has more than %u",
                             flow->length, text_plural(flow->length, "byte", "bytes"),
                             r->cut.stride);
        flow->begun = true;
    }
    *length = flow->length - flow->arrived < a->have ? flow->length - flow->arrived : a->have;
    if (*length == 0 && !(first && flow->length == 0))
        return error_set(e, ERROR_PROTOCOL,
                         "piece %u has arrived before, or the frame has no byte of it", place);
    if (!streaming_has_digest(r, *index) || flow->arrived + *length < flow->length)
        return 0;
    if (a->digests == a->data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "piece %u without a digest", place);
    *digest = a->data->digests[a->digests++];
    return 0;
}

static void line_up_shared(struct streaming *s, struct streaming_round *r, uint32_t first,
                           uint64_t digest)
{
    for (uint32_t i = first + 1; i < s->passages->count && streaming_shares_piece(s, i); i++) {
        r->flow[i].length = r->flow[first].length;
        r->flow[i].begun = true;
        if (r->mark != NULL)
            r->mark[i].digest = digest;
        streaming_enqueue_and_wake(s, r, i);
    }
}

/* Compares the digest of a piece that has arrived whole. */
static void compare_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                          uint64_t digest)
{
    const struct block_piece piece = streaming_piece(s, r, index);
    uint64_t *verified_end = &s->verified_end[piece.source];

    if (frame_buffer_compare(&s->buffer, &piece, &r->mark[index], digest) != 0 ||
        !streaming_has_digest(r, index) || r->mark[index].digest != digest)
        return;
    r->flow[index].verified = true;
    if (piece.begin + piece.length > *verified_end)
        *verified_end = piece.begin + piece.length;
}

/* Takes the bytes of a piece. `digest` is that of the piece, if it ends in this frame and has one. */
static void take_arriving_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                                uint32_t length, struct streaming_arrival *a, uint64_t digest)
{
    const struct passage *p = &s->passages->passage[index];
    struct streaming_flow *flow = &r->flow[index];

    take_piece_bytes(s, r, index, length, a->body, &a->cursor);
    if (s->base.failure.code != ERROR_NONE)
        return;
    if (p->out != PASSAGE_HERE) {
        if (r->mark != NULL)
            r->mark[index].digest = digest;
        streaming_enqueue_and_wake(s, r, index);
        return;
    }
    if (s->base.set.gather)
        line_up_shared(s, r, index, digest);
    if (flow->length == 0)
        frame_buffer_deliver_nothing(&s->buffer, p->source, streaming_piece_begin(s, r, p));
    if (flow->arrived < flow->length)
        return;
    if (r->mark != NULL)
        compare_piece(s, r, index, digest);
    streaming_count_finished(r, p);
}

/* Whether bytes are neither the first nor the last of their piece. */
static bool is_within_piece(const struct streaming_flow *flow, uint32_t length)
{
    return flow->arrived > 0 && flow->arrived + length < flow->length;
}

int streaming_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    if (message->kind != PEER_STREAMED_DATA)
        return error_set(e, ERROR_PROTOCOL,
                         "data of a step, but the exchange does not run in steps");
    const struct peer_streamed_data *data = &message->streamed_data;
    struct streaming *s = streaming_of(engine);
    uint64_t number = 0;
    struct streaming_arrival a = {.data = data, .body = body, .have = body_length};

    if (round_window_number(&s->window, data->round, &number, e) != 0)
        return -1;
    if (data->n_pieces == 0)
        return error_set(e, ERROR_PROTOCOL, "a frame without pieces");
    if (s->base.failure.code != ERROR_NONE)
        return 0;
    struct streaming_round *r = streaming_open_round(s, number);
    if (r == NULL)
        return 0;
    s->base.counts.port[port].rx_bytes += body_length;
    for (size_t i = 0; i < data->n_pieces; i++) {
        uint32_t index = 0, length = 0;
        uint64_t digest = 0;
        if (begin_arriving_piece(s, r, port, data->pieces[i], &a, &index, &length, &digest, e) != 0)
            return -1;
        if (i + 1 < data->n_pieces && length < r->flow[index].length - r->flow[index].arrived)
            return error_set(e, ERROR_PROTOCOL,
                             "a frame has %u %s less than the pieces that it names",
                             r->flow[index].length - r->flow[index].arrived - length,
                             text_plural(r->flow[index].length - r->flow[index].arrived - length,
                                         "byte", "bytes"));
        if (data->n_pieces == 1 && is_within_piece(&r->flow[index], length) &&
            engine_count_short_frame(&s->base, port, length, e) != 0)
            return -1;
        take_arriving_piece(s, r, index, length, &a, digest);
        if (s->base.failure.code != ERROR_NONE)
            return 0; /* further bytes do not count as arrived */
        a.have -= length;
    }
    if (a.have > 0)
        return error_set(e, ERROR_PROTOCOL, "a frame has %u %s more than the pieces that it names",
                         a.have, text_plural(a.have, "byte", "bytes"));
    if (a.sizes < data->n_sizes)
        return error_set(e, ERROR_PROTOCOL, "a frame has %zu %s more than pieces that begin in it",
                         data->n_sizes - a.sizes,
                         text_plural(data->n_sizes - a.sizes, "size", "sizes"));
    if (a.digests < data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "a frame has %zu %s more than pieces that end in it",
                         data->n_digests - a.digests,
                         text_plural(data->n_digests - a.digests, "digest", "digests"));
    streaming_finish_rounds(s);
    return 0;
}
