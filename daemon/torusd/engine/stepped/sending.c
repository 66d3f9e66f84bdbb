#include "daemon/torusd/engine/stepped/sending.h"

#include "daemon/lib/schedule/predict/relay.h"
#include "daemon/torusd/engine/stepped/steps.h"

#define BLOCKS_A_FRAME 512u /* most that begin in a frame: bounds the head */
/* Pieces with digests that end in a frame: one of them may have begun before it. */
#define DIGESTS_A_FRAME (FRAME_MAX_BODY / PIECE_DIGEST_LEAST + 1u)
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
    if (m->hops == 1 || s->base.set.relayed == 0)
        return RELAY_FRAME_MOST;
    return relay_frame_of(s->base.set.relayed, (uint64_t)m->blocks * s->leaving.stride);
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

struct outgoing *stepped_next(struct engine *engine, unsigned port)
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
                         .call = engine_call(&s->base),
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

void stepped_wake(struct engine *engine)
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
