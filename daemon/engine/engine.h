/* An engine moves the blocks of one exchange at one node: it is given the data frames that come in
 * and asked for those that go out. There are three. Two run the same routes and decide what leaves
 * when: stepped.h, as the papers have it, and streaming.h, where no step waits. They cut blocks into
 * pieces with cut.h and move bytes with frame_buffer.h. The third, reducing.h, combines blocks on
 * their way. The folder of each has its files; what they have in common is here.
 *
 * An engine sends its own blocks of a round only after the round has been admitted. No node is more
 * than `window` rounds ahead of the slowest. */
#ifndef TORUSD_ENGINE_ENGINE_H
#define TORUSD_ENGINE_ENGINE_H

#include "daemon/engine/blocks.h"
#include "daemon/engine/cut.h"
#include "daemon/engine/piece_digest.h"
#include "daemon/router/router.h"

#define ENGINE_DAMAGED_MOST 8u
#define ENGINE_NOT_TOLD UINT64_MAX
#define ENGINE_ROUND_MASK 127u /* the round in a frame is the round modulo this + 1 */

/* Where the nodes and ports of an engine are those of a part of the torus, in a torus of its own. */
struct engine_part {
    struct torus torus;
    uint8_t port[TORUS_MAX_PORTS]; /* of this node in the whole, by port in the part */
};

struct engine_setup {
    struct router *router;
    const struct engine_part *part;     /* NULL: the whole torus */
    const struct peer_group_call *call; /* NULL, or what all data of it is marked with */
    uint32_t handle;                    /* Prepare.handle */
    struct source *source;              /* borrowed, like all pointers here */
    struct sink *sink;
    bool one_port; /* at most one leg starts and one ends here at a time */
    bool gather;   /* allgather: our block for ourselves is our block for all */
    bool idle;     /* this node has no block, not even for itself */
    bool uniform;  /* all blocks have block_bytes (stepped: and all pieces of a round the same
                    * length); else sizes travel in the heads */
    bool digests;  /* pieces carry digests (piece_digest.h), */
    bool mends;    /* and those that are damaged come again: see engine.damaged */
    uint64_t block_bytes;
    uint32_t round_bytes; /* most bytes of one block in one round */
    uint32_t segments;    /* into which the algorithm splits that, at least 1 */
    uint32_t relayed;     /* stepped: bytes of blocks in a frame of a long message that relays pass
                           * on (relay_frame()); 0: as in other frames */
    uint32_t window;      /* rounds under way at the same time, at least 1 */
    /* Streaming, or NULL: how much comes by origin. Both ends know how long each block is then, and cut
     * it evenly, however long others are; not those of an origin that has not told. This node's own entry says
     * whether it has. */
    const uint64_t *incoming;
};

struct engine_port_counts {
    uint64_t tx_bytes, rx_bytes; /* block bytes */
    uint64_t tx_blocks;          /* put on this port's channel, relayed ones included */
    uint64_t combined_messages;  /* that started here and left by this port */
};

struct engine_counts {
    struct engine_port_counts port[TORUS_MAX_PORTS];
    uint32_t most_starts; /* most legs at a time that had left from here in part, */
    uint32_t most_ends;   /* and that had come in here, at their end, in part */
    uint32_t steps;
    uint32_t *step_blocks;     /* by step: most blocks on any channel of this node in any round */
    uint32_t *step_messages;   /* by step: most combined messages on any of them */
    uint64_t blocks_delivered; /* from other nodes, in the last round finished */
    uint64_t bytes_delivered;  /* from other nodes, in all rounds */
    uint64_t delivered_at; /* router_now() when the last block of the round was where it belongs */
};

struct engine;

/* The functions below, for one kind of engine. */
struct engine_ops {
    void (*free)(struct engine *engine);
    void (*admit)(struct engine *engine, uint64_t round);
    int (*frame)(struct engine *engine, unsigned port, const struct peer_message *message,
                 const struct extents *body, uint32_t body_length, struct error *e);
    int (*clear)(struct engine *engine, unsigned port, const struct peer_clear *clear,
                 struct error *e);
    struct outgoing *(*next)(struct engine *engine, unsigned port);
    void (*wake)(struct engine *engine);
    /* NULL, or takes the messages of a session that are not data. */
    int (*message)(struct engine *engine, unsigned port, const struct peer_message *message,
                   struct error *e);
    void (*describe)(const struct engine *engine, char *text, size_t size);
    /* NULL, or tells what has been delivered here so far of each block, this node's own too; some of it
     * perhaps several times. Where pieces carry digests, only of those that have been compared; else perhaps
     * beyond the end of a block, too. After a failure what had come before it, if that
     * was damage; else nothing. */
    void (*arrived)(const struct engine *engine,
                    void (*tell)(void *context, uint32_t origin, uint64_t begin, uint64_t end),
                    void *context);
};

/* A piece that has arrived damaged: the digest that it came with, and that of its bytes. */
struct engine_damaged {
    struct block_piece piece;
    uint64_t digest, came;
};

/* What all kinds have. */
struct engine {
    const struct engine_ops *ops;
    struct engine_setup set;
    struct engine_counts counts;
    uint64_t rounds;          /* of one repetition; 0: not known yet, this is the first one */
    uint64_t rounds_finished; /* in order: sent, relayed, delivered and taken by the sink */
    /* Sums of the digests of pieces (piece_digest.h): of our own, each as often as it is delivered elsewhere, and
     * of those of others that were delivered here. */
    uint64_t sent_digest, delivered_digest;
    /* No round ends before whoever runs the engine has written them to the sink, and taken them off here. One
     * more damaged piece fails the engine. */
    struct engine_damaged damaged[ENGINE_DAMAGED_MOST];
    uint32_t damaged_count;
    uint32_t crumbs[TORUS_MAX_PORTS]; /* that have come in (engine_crumb()) */
    uint32_t lost;        /* bit p: the link at port p has been down; nothing is sent there */
    struct error failure; /* why this node cannot go on; ERROR_NONE if it can */
};

static inline void engine_free(struct engine *engine)
{
    if (engine != NULL)
        engine->ops->free(engine);
}

/* This round may leave, too. Called for one round after the other. */
static inline void engine_admit(struct engine *engine, uint64_t round)
{
    engine->ops->admit(engine, round);
}

/* What the data frames of all kinds of engines have. */
struct engine_data {
    uint32_t exchange; /* Prepare.handle */
    uint32_t round;    /* modulo ENGINE_ROUND_MASK + 1, if the peer follows the protocol */
};

/* Whether it is the message of a data frame; if so, fills *data. */
bool engine_data(const struct peer_message *message, struct engine_data *data);

/* A data frame has come in; all is borrowed. Returns 0, or -1 with *e if it is not one of this
 * engine's frames or the schedule does not expect it. A failure of our own (sink, memory) is not
 * the peer's fault: the call succeeds and engine_failed() tells. */
static inline int engine_frame(struct engine *engine, unsigned port,
                               const struct peer_message *message, const struct extents *body,
                               uint32_t body_length, struct error *e)
{
    return engine->ops->frame(engine, port, message, body, body_length, e);
}

/* One-port: the end of a leg that starts here is ready for it; or such a clear passes through on
 * its way to the leg's start. Returns 0, or -1 with *e if no such leg starts or passes here. */
static inline int engine_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                               struct error *e)
{
    return engine->ops->clear(engine, port, clear, e);
}

/* The next frame for this port, owned by the caller then; or NULL. */
static inline struct outgoing *engine_next(struct engine *engine, unsigned port)
{
    return engine->ops->next(engine, port);
}

/* The source has bytes again, or the sink has taken what was pending. */
static inline void engine_wake(struct engine *engine)
{
    engine->ops->wake(engine);
}

/* Describes its progress in a text of at most `size` bytes: "step 3 of 6, waiting for the message
 * of step 2 on port -1". */
static inline void engine_describe(const struct engine *engine, char *text, size_t size)
{
    engine->ops->describe(engine, text, size);
}

/* The link at this port has been down: frames on their way are lost, so nothing more is sent there.
 * The exchange can no longer succeed. */
static inline void engine_lose_port(struct engine *engine, unsigned port)
{
    engine->lost |= 1u << port;
}

static inline bool engine_has_lost(const struct engine *engine, unsigned port)
{
    return (engine->lost & 1u << port) != 0;
}

/* NULL, or why this node cannot go on. */
static inline const struct error *engine_failed(const struct engine *engine)
{
    return engine->failure.code != ERROR_NONE ? &engine->failure : NULL;
}

/* --- for the engines themselves --- */

/* Remember the first failure. Return -1. */
int engine_fail(struct engine *engine, const struct error *e);
int engine_no_memory(struct engine *engine);

/* A frame has come that has so many bytes from within a piece, and nothing else. Who has not more of it yet
 * sends few, now and then; who did so all the time would make each byte that waits take a frame's memory. Returns
 * 0, or -1 with *e. */
int engine_crumb(struct engine *engine, unsigned port, uint32_t length, struct error *e);

/* How the engine cuts blocks: into pieces no smaller than `least`, if they are uniform. */
struct cut engine_cut(const struct engine_setup *setup, uint32_t least);

/* The round's place in its repetition: rounds are counted through. */
static inline uint64_t engine_round(const struct engine *engine, uint64_t round)
{
    return engine->rounds > 0 ? round % engine->rounds : round;
}

/* The torus that its ranks and ports are of. */
static inline const struct torus *engine_torus(const struct engine_setup *setup)
{
    return setup->part != NULL ? &setup->part->torus : router_torus(setup->router);
}

/* This node's port for one of the engine's. */
static inline unsigned engine_port(const struct engine *engine, unsigned port)
{
    return engine->set.part != NULL ? engine->set.part->port[port] : port;
}

/* In the whole torus. */
static inline uint32_t engine_neighbour(const struct engine *engine, unsigned port)
{
    const struct router *r = engine->set.router;

    return torus_neighbour(router_torus(r), router_rank(r), engine_port(engine, port));
}

/* It has something for this port of its own again. */
static inline void engine_wake_port(const struct engine *engine, unsigned port)
{
    router_wake(engine->set.router, engine_port(engine, port));
}

/* What data that it sends is marked with, if it is of a call. */
static inline struct peer_group_call engine_call(const struct engine *engine)
{
    return engine->set.call != NULL ? *engine->set.call : (struct peer_group_call){0};
}

#endif
