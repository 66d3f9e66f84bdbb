#include "daemon/torusd/engine/reducing/receiving.h"

#include "daemon/torusd/engine/reducing/combining.h"
#include "daemon/torusd/engine/reducing/frame_digest.h"
#include "daemon/torusd/engine/reducing/rounds.h"
#include "proto/text.h"

/* The bytes of a frame that are not processed yet. */
struct reducing_arrival {
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t left;
};

/* Takes the next chunk of a piece; `number` chunks have arrived before. */
static int take_arriving_chunk(struct reducing *s, const struct reducing_piece *piece,
                               uint32_t number, struct reducing_arrival *in, struct extent *chunk,
                               struct error *e)
{
    uint32_t length = reducing_chunk_length(s, piece, number);

    if (length > in->left)
        return error_set(e, ERROR_PROTOCOL, "a frame has %u %s less than the pieces that it names",
                         length - in->left, text_plural(length - in->left, "byte", "bytes"));
    in->left -= length;
    if (chunk_gather(in->body, &in->cursor, length, chunk) != 0)
        (void)engine_no_memory(&s->base);
    return 0;
}

/* Takes a chunk from a child. */
static int take_contribution(struct reducing *s, struct reducing_round *r, uint32_t child,
                             struct reducing_arrival *in, struct error *e)
{
    uint32_t index = s->trees->child[child].tree;
    struct reducing_branch *branch = &r->branch[child];
    struct reducing_piece *piece = &r->piece[index];
    struct extent chunk;

    if (branch->arrived == piece->chunks)
        return error_set(e, ERROR_PROTOCOL, "piece %u has arrived before",
                         s->trees->child[child].place);
    if (take_arriving_chunk(s, piece, branch->arrived, in, &chunk, e) != 0)
        return -1;
    branch->arrived++;
    piece->missing -= chain_is_empty(&branch->up);
    if (!reducing_has_failed(s) && chain_append(&s->chunks, &branch->up, &chunk) != 0)
        (void)engine_no_memory(&s->base);
    reducing_combine_if_ready(s, r, index);
    chunk_drop(&chunk);
    return 0;
}

/* Takes a chunk of the result from the parent. */
static int take_result(struct reducing *s, struct reducing_round *r, uint32_t index,
                       struct reducing_arrival *in, struct error *e)
{
    struct reducing_piece *piece = &r->piece[index];
    struct extent chunk;

    if (piece->returned == piece->combined)
        return error_set(e, ERROR_PROTOCOL,
                         "a result of piece %u, but this node has not contributed to it",
                         s->trees->tree[index].place);
    if (take_arriving_chunk(s, piece, piece->returned, in, &chunk, e) != 0)
        return -1;
    piece->returned++;
    r->base.left--;
    if (!reducing_has_failed(s) && reducing_deliver(s, r, index, piece->returned - 1, &chunk) == 0)
        reducing_send_down(s, r, index, &chunk);
    chunk_drop(&chunk);
    return 0;
}

static int take_named_piece(struct reducing *s, struct reducing_round *r, unsigned port,
                            uint32_t place, struct reducing_arrival *in, struct error *e)
{
    const struct reduction_trees *trees = s->trees;
    uint32_t up = trees->arrivals[port], down = s->options.everywhere ? trees->departures[port] : 0;

    if (place < up)
        return take_contribution(s, r, trees->arrival[port][place], in, e);
    if (place - up < down)
        return take_result(s, r, trees->departure[port][place - up], in, e);
    return error_set(e, ERROR_PROTOCOL, "no piece %u: this channel has %u", place, up + down);
}

static int check_reducing_head(const struct reducing *s, const struct peer_message *message,
                               uint64_t *number, struct error *e)
{
    if (message->kind != PEER_STREAMED_DATA)
        return error_set(e, ERROR_PROTOCOL,
                         "data of a step, but a reduction does not run in steps");
    const struct peer_streamed_data *data = &message->streamed_data;
    if (round_window_number(&s->window, data->round, number, e) != 0)
        return -1;
    if (data->n_pieces == 0)
        return error_set(e, ERROR_PROTOCOL, "a frame without pieces");
    if (data->n_sizes > 0)
        return error_set(e, ERROR_PROTOCOL, "%zu %s for pieces whose sizes are known",
                         data->n_sizes, text_plural(data->n_sizes, "size", "sizes"));
    return 0;
}

int reducing_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                   const struct extents *body, uint32_t body_length, struct error *e)
{
    struct reducing *s = reducing_of(engine);
    struct reducing_arrival in = {.body = body, .left = body_length};
    uint64_t number = 0;

    if (check_reducing_head(s, message, &number, e) != 0)
        return -1;
    if (reducing_has_failed(s))
        return 0;
    const struct peer_streamed_data *data = &message->streamed_data;
    int result = reducing_check_digest(s, port, data, body, &in.left, e);
    if (result <= 0)
        return result;
    struct reducing_round *r = reducing_open_round(s, number);
    if (r == NULL)
        return 0;
    s->base.counts.port[port].rx_bytes += body_length;
    for (size_t i = 0; i < data->n_pieces && !reducing_has_failed(s); i++)
        if (take_named_piece(s, r, port, data->pieces[i], &in, e) != 0)
            return -1;
    if (in.left > 0 && !reducing_has_failed(s))
        return error_set(e, ERROR_PROTOCOL, "a frame has %u %s more than the pieces that it names",
                         in.left, text_plural(in.left, "byte", "bytes"));
    reducing_finish_rounds(s);
    return 0;
}
