#include "daemon/torusd/engine/streaming/rounds.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/streaming/pieces.h"

void streaming_free_round(struct streaming_round *r)
{
    free(r->flow);
    free(r->mark);
    queues_free(&r->queues);
    free(r->room);
    *r = (struct streaming_round){0};
}

/* Allocates all memory of a round or none. */
static int allocate_streaming_round(struct streaming *s, struct streaming_round *r)
{
    r->flow = calloc((size_t)s->passages->count + 1, sizeof *r->flow);
    if (s->base.set.digests)
        r->mark = calloc((size_t)s->passages->count + 1, sizeof *r->mark);
    if (r->flow != NULL && (r->mark != NULL || !s->base.set.digests) &&
        queues_init(&r->queues, s->ports + 1, s->passages->most_ahead + 1, s->passages->count) ==
            0 &&
        frame_buffer_room(&s->buffer, s->passages->count, &r->room) == 0)
        return 0;
    streaming_free_round(r);
    return -1;
}

static bool is_first_of_own_block(const struct streaming *s, uint32_t index)
{
    return index < s->passages->own && !streaming_shares_piece(s, index);
}

struct streaming_round *streaming_open_round(struct streaming *s, uint64_t number)
{
    struct streaming_round *r = streaming_find_round(s, number);
    const struct engine_setup *set = &s->base.set;

    if (r != NULL)
        return r;
    r = round_window_slot(&s->window, number);
    if (r->flow == NULL && allocate_streaming_round(s, r) != 0) {
        (void)engine_no_memory(&s->base);
        return NULL;
    }
    *r = (struct streaming_round){
        .base = {.number = number, .left = s->passages->count, .open = true},
        .cut = cut_round(&s->cut, engine_round(&s->base, number)),
        .flow = r->flow,
        .mark = r->mark,
        .queues = r->queues,
        .room = r->room};
    r->own = (struct own_block){.at = r->cut.begin, .delivered = set->idle};
    queues_clear(&r->queues);
    if (r->mark != NULL)
        memset(r->mark, 0, s->passages->count * sizeof *r->mark);
    for (uint32_t i = 0; i < s->passages->count; i++) {
        const struct passage *p = &s->passages->passage[i];
        struct streaming_flow *flow = &r->flow[i];
        *flow = (struct streaming_flow){.hold = frame_buffer_hold(&s->buffer, r->room, i)};
        if (!set->uniform && p->in != PASSAGE_HERE)
            continue; /* the frames tell its length */
        flow->begun = true;
        const struct cut_round cut = streaming_cut(s, r, p);
        flow->length = cut_length(&cut, streaming_block_size(s, p), p->segment);
        /* an empty piece is not sent, because every node knows that it is empty */
        if (set->uniform && flow->length == 0) {
            if (p->out == PASSAGE_HERE)
                frame_buffer_deliver_nothing(&s->buffer, p->source, streaming_piece_begin(s, r, p));
            streaming_count_finished(r, p);
        }
        r->unread += is_first_of_own_block(s, i) && flow->length > 0;
    }
    return r;
}

void streaming_finish_rounds(struct streaming *s)
{
    struct streaming_round *r;

    do {
        r = streaming_find_round(s, s->base.rounds_finished);
        if (r == NULL || !r->base.admitted || s->base.failure.code != ERROR_NONE)
            return;
        if (!r->own.delivered && r->unread == 0)
            frame_buffer_deliver_own(&s->buffer, s->passages->rank, &r->cut, &r->own);
    } while (r->own.delivered && round_window_end(&s->window));
}
