/* The state of a stepped engine, and how its rounds run step by step; for stepped.c. */
#pragma once

#include "daemon/torusd/engine/frame_buffer.h"
#include "daemon/torusd/engine/stepped.h"

/* The progress of an arriving combined message. */
struct stepped_incoming {
    uint32_t begun;     /* blocks */
    uint32_t remaining; /* bytes of the current block that have not arrived */
    uint32_t offset;    /* bytes of it that have arrived */
    bool started;
    struct piece_mark mark; /* mark of the block, if it is delivered here and pieces have digests */
};

/* The progress of the messages that leave by one port, in the plan's order. */
struct stepped_sender {
    const uint32_t *message; /* indices into plan.send */
    uint32_t count;
    uint32_t active;         /* how many of them may leave, because their step has started */
    uint32_t current;        /* index of the message that is leaving */
    uint32_t block;          /* index of its block that is leaving */
    uint32_t offset;         /* bytes of that block that have left */
    struct hold_place place; /* where these bytes end, if other messages send the block, too */
    struct piece_mark mark;  /* mark of the block, if it comes from the source */
    bool started;            /* part of the current message has left */
    bool stalled;            /* the source was asked, and had no bytes yet */
};

/* A block in transit. In an allgather the segments of this node's own block follow the plan's slots. */
struct stepped_slot {
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
    struct frame_buffer buffer;
    unsigned ports;
    uint64_t round;
    struct cut_round leaving; /* the cut of `round` */
    bool started;
    bool round_over;
    uint32_t step;
    uint32_t sends_active; /* entries of plan.send that may leave */
    uint32_t sends_left;
    uint32_t *step_sends_left; /* by step */
    uint32_t arrivals_left;
    uint32_t *takes_left;  /* by step */
    uint32_t starts, ends; /* legs under way that start here, that end here */
    uint64_t *cleared;     /* one-port, by plan.send: 1 + the last round for which it was cleared */
    struct stepped_incoming *incoming;
    struct stepped_slot *slot;
    uint8_t *room; /* for copies in the slots' holds */
    struct stepped_sender sender[TORUS_MAX_PORTS];
    uint32_t *sender_messages;
    struct own_block own;
    uint32_t *channel_blocks; /* [step * ports + port], this round */
    uint32_t *channel_messages;
    uint64_t delivered; /* blocks from others, this round */
    bool all_delivered;
};

static inline struct stepped *stepped_of(struct engine *engine)
{
    return (struct stepped *)engine;
}

/* Whether an arriving message is complete in this round. */
static inline bool stepped_is_complete(const struct stepped *s, uint32_t arrival)
{
    const struct stepped_incoming *in = &s->incoming[arrival];

    return in->started && in->begun == s->plan->arrival[arrival].blocks && in->remaining == 0;
}

/* Returns the round to which arriving frames belong. */
static inline uint64_t stepped_arriving_round(const struct stepped *s)
{
    return s->round_over ? s->round + 1 : s->round;
}

/* Returns the slot of a block that leaves, or NULL: it is read from the source as it leaves. */
static inline struct stepped_slot *stepped_slot_of(const struct stepped *s,
                                                   const struct plan_block *b)
{
    if (b->slot != PLAN_NO_SLOT)
        return &s->slot[b->slot];
    return s->base.set.gather ? &s->slot[s->plan->slots + b->segment] : NULL;
}

/* Returns the piece of a block, `length` bytes long, that moves in this round. */
static inline struct block_piece stepped_piece(const struct stepped *s, const struct plan_block *b,
                                               const struct cut_round *cut, uint32_t length)
{
    return (struct block_piece){.source = b->source,
                                .destination = s->base.set.gather ? b->source : b->destination,
                                .begin = cut_begin(cut, b->segment),
                                .length = length};
}

/* `mark`, unless pieces have no digests. */
static inline struct piece_mark *stepped_mark(const struct stepped *s, struct piece_mark *mark)
{
    return s->base.set.digests ? mark : NULL;
}

/* Whether pieces of `length` bytes carry digests. */
static inline bool stepped_has_digest(const struct stepped *s, uint32_t length)
{
    return s->base.set.digests && piece_has_digest(length);
}

/* Prepares a slot for a block of `length` bytes. */
static inline void stepped_open_slot(struct stepped_slot *slot, uint32_t length)
{
    slot->length = length;
    slot->sends_left = slot->sends;
}

/* Counts blocks, and a message if `message`, on the channel of a port in a step. */
static inline void stepped_count_channel(struct stepped *s, uint32_t step, unsigned port,
                                         uint32_t blocks, bool message)
{
    s->base.counts.port[port].tx_blocks += blocks;
    s->channel_blocks[step * s->ports + port] += blocks;
    s->channel_messages[step * s->ports + port] += message;
}

/* One-port: sends a clear for the first leg that ends here and has not arrived. */
void stepped_clear_next(struct stepped *s);

/* engine_ops.clear */
int stepped_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                  struct error *e);

/* Resets the arrivals at the start of a round: no part of a message has arrived. */
void stepped_expect_arrivals(struct stepped *s);

/* Runs the steps as far as the arrived and sent messages allow. */
void stepped_advance(struct stepped *s);

/* engine_ops.admit */
void stepped_admit(struct engine *engine, uint64_t round);
