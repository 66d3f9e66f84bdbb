/* Stepped execution of a plan, as the papers have it: a node's step q+1 starts when all that its
 * step q takes in has come. One round at a time; the counts are the schedule's.
 *
 * Blocks that pass through stay in the slabs they were read into. Outgoing frames are made when a
 * port asks for them, so that a message of any size needs no memory before it leaves. */
#ifndef TORUSD_EXCHANGE_STEPPED_H
#define TORUSD_EXCHANGE_STEPPED_H

#include "daemon/exchange/blocks.h"
#include "daemon/router/router.h"
#include "daemon/schedule/plan.h"

struct stepped;

struct stepped_setup {
    struct router *router;
    const struct plan *plan;
    uint32_t handle;       /* Prepare.handle */
    struct source *source; /* borrowed, like all here */
    struct sink *sink;
    bool one_port; /* at most one leg starts and one ends here at a time */
    bool gather;   /* allgather: our block for ourselves is our block for all; one segment */
    bool idle;     /* we have no block, not even for ourselves */
    bool uniform;  /* all blocks have block_bytes, all segments the same length; else sizes travel
                    * in the heads */
    uint64_t block_bytes;
    uint32_t segment_bytes; /* most bytes of one block in one round */
    uint32_t segments;      /* into which the algorithm splits that; 0 means 1 */
};

struct stepped_port_counts {
    uint64_t tx_bytes, rx_bytes; /* block bytes */
    uint64_t tx_blocks;          /* put on this port's channel, relayed ones included */
    uint64_t combined_messages;  /* that started here and left by this port */
};

struct stepped_counts {
    struct stepped_port_counts port[TORUS_MAX_PORTS];
    uint32_t most_starts; /* legs of which a part, but not all, had left from here, at the most */
    uint32_t most_ends;   /* and of which a part had come in at their end */
    uint32_t steps;
    uint32_t *step_blocks;     /* by step: most blocks on any channel of this node in any round */
    uint32_t *step_messages;   /* by step: most combined messages on any of them */
    uint64_t blocks_delivered; /* from other nodes, in the last round finished */
    uint64_t bytes_delivered;  /* from other nodes, in all */
    uint64_t delivered_at; /* router_now() when the last block of the round was where it belongs */
};

/* Ready to take in frames of round 0. Returns NULL with *e if there is no memory. */
struct stepped *stepped_new(const struct stepped_setup *setup, struct error *e);
void stepped_free(struct stepped *s);

/* Starts to send. Rounds start in order, each after the one before has finished on every node. */
void stepped_start(struct stepped *s, uint64_t round);

/* A frame has come in. Returns 0, or -1 with *e if the schedule has no place for it. A failure of
 * our own (sink, memory) is no fault of the peer: see stepped_failed(). */
int stepped_frame(struct stepped *s, unsigned port, const Peer__Data *data,
                  const struct extents *body, uint32_t body_length, struct error *e);

/* One-port: the other end of a leg that starts here takes nothing else in now; or word of that is
 * on its way through. Returns 0, or -1 with *e if no such leg starts here. */
int stepped_clear(struct stepped *s, unsigned port, const Peer__Clear *clear, struct error *e);

/* The next frame for this port, or NULL. */
struct outgoing *stepped_next(struct stepped *s, unsigned port);

/* The link at this port has been down: what was on its way is gone, so nothing more is sent there.
 * The exchange cannot end well any more. */
void stepped_lose_port(struct stepped *s, unsigned port);

/* The source has something again, or the sink has room. */
void stepped_wake(struct stepped *s);

/* Everything of the round started last has been sent, relayed, delivered and taken by the sink. */
bool stepped_round_finished(const struct stepped *s);

/* NULL, or why this node cannot go on. */
const struct error *stepped_failed(const struct stepped *s);

/* Where it stands, in words: "step 3 of 6, waiting for 2 messages (one from port -1)". */
void stepped_describe(const struct stepped *s, char *text, size_t size);

const struct stepped_counts *stepped_counts(const struct stepped *s);

#endif
