/* An engine moves the blocks of one exchange at one node: it takes the data frames that arrive, and provides
 * the frames to send. There are three engines. Two run the same routes, but send frames at different times:
 * stepped.h follows the steps as in the papers; in streaming.h no step waits for another. They cut blocks
 * into pieces with cut.h and move bytes with frame_buffer.h. The third, reducing.h, combines blocks on their
 * way. All engines share this header.
 *
 * An engine sends its own blocks of a round only after the round has been admitted. No node is more than
 * `window` rounds ahead of the slowest. */
#pragma once

#include "daemon/lib/trace/trace.h"
#include "daemon/torusd/engine/blocks.h"
#include "daemon/torusd/engine/cut.h"
#include "daemon/torusd/engine/piece_digest.h"
#include "daemon/torusd/router/router.h"

struct engine;

#define ENGINE_DAMAGED_MOST 8u
#define ENGINE_NOT_TOLD UINT64_MAX
#define ENGINE_ROUND_MASK 127u /* the round in a frame is the round modulo this + 1 */

/* A part of the torus (a row, column or plane), or some nodes of it, as a torus of its own. The engine's nodes and
 * ports are those of the part. */
struct engine_part {
    struct torus torus;
    uint8_t port[TORUS_MAX_PORTS]; /* this node's port in the whole torus, by port in the part */
    uint32_t
        channel; /* 0, or GroupCall.channel of what leaves by port 0 of the part; the next ports have the next numbers */
};

struct engine_setup {
    struct router *router;
    const struct engine_part *part; /* NULL: the whole torus */
    /* NULL, or the call with which all data of the engine is marked */
    const struct peer_group_call *call;
    uint32_t handle;       /* Prepare.handle */
    struct source *source; /* borrowed, like all pointers here */
    struct sink *sink;
    bool one_port; /* at most one leg starts and one ends here at a time */
    bool gather;   /* allgather: this node's block for itself is its block for all nodes */
    bool idle;     /* this node sends no block, not even to itself */
    bool uniform;  /* all blocks have block_bytes (stepped: and all pieces of a round the same
                    * length); else sizes travel in the heads */
    bool digests;  /* pieces carry digests (piece_digest.h) */
    bool repairs;  /* damaged pieces are repaired: see engine.damaged */
    uint64_t block_bytes;
    uint32_t round_bytes;
    uint32_t segments; /* into which the algorithm splits round_bytes, at least 1 */
    /* Stepped: bytes of blocks in a frame of a long message that leaves by a port, and that relays pass on
     * (relay_frame()), by port. NULL: as in other frames. */
    const uint32_t *relayed;
    uint32_t window; /* rounds under way at the same time, at least 1 */
    /* Streaming, or NULL: the length of the block that arrives, by origin; ENGINE_NOT_TOLD if the origin has
     * not told it. Both ends then know the length of each block, and cut it evenly, whatever the lengths of
     * other blocks. A block whose origin has not told its length is cut as without this table. The entry of
     * this node says whether this node has told its lengths. */
    const uint64_t *incoming;
    struct trace *trace; /* NULL, or where the engine notes the ends of steps and rounds */
};

struct engine_port_counts {
    uint64_t tx_bytes, rx_bytes; /* block bytes */
    uint64_t tx_blocks;          /* blocks sent through this port, relayed ones included */
    uint64_t combined_messages;  /* combined messages that started at this node and left by this
                                  * port */
};

struct engine_counts {
    struct engine_port_counts port[TORUS_MAX_PORTS];
    uint32_t most_starts; /* most legs that were leaving this node at the same time */
    uint32_t most_ends;   /* most legs that were arriving at this node at the same time */
    uint32_t steps;
    uint32_t *step_blocks;     /* by step: most blocks on any channel of this node in any round */
    uint32_t *step_messages;   /* by step: most combined messages on any channel of this node */
    uint64_t blocks_delivered; /* from other nodes, in the last round finished */
    uint64_t bytes_delivered;  /* from other nodes, in all rounds */
    uint64_t delivered_at;     /* router_now() when the last block of the round was delivered */
};

/* Why nothing more leaves by a port now; for traces (daemon/lib/trace). */
enum engine_wait {
    ENGINE_READY,   /* a frame is ready */
    ENGINE_SOURCE,  /* the source has no bytes yet */
    ENGINE_SINK,    /* the sink has not written what has arrived */
    ENGINE_OTHERS,  /* bytes of other nodes, or the end of a step */
    ENGINE_ROUND,   /* the next round: some node has not finished an earlier one */
    ENGINE_MEMBERS, /* a group: no call, or other members have not made it */
    ENGINE_DONE,    /* nothing is left to send */
};

/* The functions below, for one kind of engine. */
struct engine_ops {
    void (*free)(struct engine *engine);
    void (*admit)(struct engine *engine, uint64_t round);
    int (*frame)(struct engine *engine, unsigned port, const struct peer_message *message,
                 const struct extents *body, uint32_t body_length, struct error *e);
    int (*clear)(struct engine *engine, unsigned port, const struct peer_clear *clear,
                 struct error *e);
    struct outgoing *(*next)(struct engine *engine, unsigned port);
    /* NULL, or as engine_passes(). */
    int (*passes)(struct engine *engine, unsigned port, const struct peer_message *message);
    /* NULL, or as engine_places(); places->count is 0. */
    void (*places)(struct engine *engine, unsigned port, const struct peer_message *message,
                   uint32_t body_length, uint32_t offset, struct places *places);
    void (*wake)(struct engine *engine);
    /* NULL, or takes the messages of a session that are not data. */
    int (*message)(struct engine *engine, unsigned port, const struct peer_message *message,
                   struct error *e);
    void (*describe)(const struct engine *engine, char *text, size_t size);
    /* NULL, or calls tell() for the bytes of each block that have been delivered at this node, its own block
     * included; some bytes may be told several times. If pieces carry digests, only pieces whose digests
     * match are told; else the bytes told may extend beyond the end of a block. After a failure for damage,
     * the bytes that arrived before the damage are told; after any other failure, none. */
    void (*arrived)(const struct engine *engine,
                    void (*tell)(void *context, uint32_t origin, uint64_t begin, uint64_t end),
                    void *context);
    /* NULL, or sets why nothing leaves, by port. */
    void (*waits)(const struct engine *engine, enum engine_wait *port);
};

/* A piece that has arrived damaged: the digests of its bytes as sent, and as they arrived. */
struct engine_damaged {
    struct block_piece piece;
    uint64_t digest, arrived_digest;
};

/* What all engines share. */
struct engine {
    const struct engine_ops *ops;
    struct engine_setup set;
    struct engine_counts counts;
    uint64_t rounds; /* rounds of one repetition; 0: not known yet, in the first repetition */
    /* counted in order: sent, relayed, delivered and written by the sink */
    uint64_t rounds_finished;
    /* Sums of the digests of pieces (piece_digest.h): of this node's pieces, each counted once per node to
     * which it is delivered; and of the pieces of other nodes that were delivered here. */
    uint64_t sent_digest, delivered_digest;
    /* Damaged pieces. No round ends before the exchange has written their bytes again to the sink, and
     * removed them from this list. One damaged piece more than fits fails the engine. */
    struct engine_damaged damaged[ENGINE_DAMAGED_MOST];
    uint32_t damaged_count;
    uint32_t short_frames[TORUS_MAX_PORTS]; /* short frames counted by engine_count_short_frame() */
    uint32_t lost;        /* bit p: the link at port p has been down; nothing is sent there */
    struct error failure; /* why this node cannot continue; ERROR_NONE if it can */
};

/* Frees the engine, but nothing that its setup has lent; NULL does nothing. */
static inline void engine_free(struct engine *engine)
{
    if (engine != NULL)
        engine->ops->free(engine);
}

/* Allows the blocks of this round to leave. Called for each round in turn. */
static inline void engine_admit(struct engine *engine, uint64_t round)
{
    engine->ops->admit(engine, round);
}

/* The fields that the data frames of all engines share. */
struct engine_data {
    uint32_t exchange; /* Prepare.handle */
    uint32_t round;    /* modulo ENGINE_ROUND_MASK + 1, if the peer follows the protocol */
};

/* Whether a message is that of a data frame; if so, fills *data. */
bool engine_data(const struct peer_message *message, struct engine_data *data);

/* Takes a data frame; all arguments are borrowed. Returns 0, or -1 with *e if the frame is not one of this
 * engine, or the schedule does not expect it. If this node itself fails (sink, memory), that is not the
 * peer's fault: the call succeeds, and engine_failed() returns the failure. */
static inline int engine_frame(struct engine *engine, unsigned port,
                               const struct peer_message *message, const struct extents *body,
                               uint32_t body_length, struct error *e)
{
    return engine->ops->frame(engine, port, message, body, body_length, e);
}

/* Returns this node's port by which all of the body of a data frame leaves; -1: another part of it stays here, leaves
 * by other ports, or has to be read. Such a body may come in a slab whose bytes are in a pipe. */
static inline int engine_passes(struct engine *engine, unsigned port,
                                const struct peer_message *message)
{
    return engine->ops->passes != NULL ? engine->ops->passes(engine, port, message) : -1;
}

/* Sets where the bytes of a data frame's body belong, from `offset` on, as far as they end in the sink's memory
 * (sink_ops.memory): none, unless engine_frame() would accept the frame now. So nothing is written but bytes that this port
 * is to deliver next. A body may come with bytes in a slab that is SLAB_IN_PLACE if they are where this function still
 * says. */
static inline void engine_places(struct engine *engine, unsigned port,
                                 const struct peer_message *message, uint32_t body_length,
                                 uint32_t offset, struct places *places)
{
    places->count = 0;
    if (engine->ops->places != NULL)
        engine->ops->places(engine, port, message, body_length, offset, places);
}

/* One-port: takes a clear, by which the end of a leg says that it is ready. The leg starts here, or the
 * clear passes through on its way to the leg's start. Returns 0, or -1 with *e if no such leg starts or
 * passes here. */
static inline int engine_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                               struct error *e)
{
    return engine->ops->clear(engine, port, clear, e);
}

/* Returns the next frame for this port, owned by the caller; or NULL. */
static inline struct outgoing *engine_next(struct engine *engine, unsigned port)
{
    return engine->ops->next(engine, port);
}

/* To be called when the source has bytes again, or the sink has written its pending bytes. */
static inline void engine_wake(struct engine *engine)
{
    engine->ops->wake(engine);
}

/* Writes a description of the engine's progress, at most `size` bytes: "step 3 of 6, waiting for the message
 * of step 2 on port -1". */
static inline void engine_describe(const struct engine *engine, char *text, size_t size)
{
    engine->ops->describe(engine, text, size);
}

/* Sets why nothing more leaves now, for each port of the engine's torus; ENGINE_OTHERS if the engine cannot tell. */
void engine_waits(const struct engine *engine, enum engine_wait *port);

/* Notes an event, if the engine is traced. */
static inline void engine_note(const struct engine *engine, enum trace_event_kind kind, uint32_t a,
                               uint64_t b)
{
    if (engine->set.trace != NULL)
        trace_note(engine->set.trace, router_now(engine->set.router), kind, a, b);
}

/* Whether this is the last round of a repetition, as far as the engine knows. */
static inline bool engine_is_last_round(const struct engine *engine, uint64_t round)
{
    return engine->rounds == 0 || (round + 1) % engine->rounds == 0;
}

/* To be called when the link at this port has been down: frames on their way are lost, so nothing more is
 * sent there. The exchange can no longer succeed. */
static inline void engine_lose_port(struct engine *engine, unsigned port)
{
    engine->lost |= 1u << port;
}

/* Whether the link at this port has been down. */
static inline bool engine_has_lost(const struct engine *engine, unsigned port)
{
    return (engine->lost & 1u << port) != 0;
}

/* Returns why this node cannot continue, or NULL if it can. */
static inline const struct error *engine_failed(const struct engine *engine)
{
    return engine->failure.code != ERROR_NONE ? &engine->failure : NULL;
}

/* --- for the engines themselves --- */

/* Record a failure, unless there is an earlier one. Return -1. */
int engine_fail(struct engine *engine, const struct error *e);
int engine_no_memory(struct engine *engine);

/* Counts a frame that has only `length` bytes, from the middle of a piece. A node that has no more bytes yet
 * sends such a frame now and then. If all frames were so short, each waiting byte would take the memory of a
 * frame; so too many short frames are refused. Returns 0, or -1 with *e. */
int engine_count_short_frame(struct engine *engine, unsigned port, uint32_t length,
                             struct error *e);

/* Returns how the engine cuts blocks: uniform blocks into pieces of at least `least` bytes. */
struct cut engine_cut(const struct engine_setup *setup, uint32_t least);

/* Returns the number of a round within its repetition: engines number the rounds of all repetitions
 * consecutively. */
static inline uint64_t engine_round(const struct engine *engine, uint64_t round)
{
    return engine->rounds > 0 ? round % engine->rounds : round;
}

/* Returns the torus to which the ranks and ports of the engine belong. */
static inline const struct torus *engine_torus(const struct engine_setup *setup)
{
    return setup->part != NULL ? &setup->part->torus : router_torus(setup->router);
}

/* Returns this node's port for a port of the engine. */
static inline unsigned engine_port(const struct engine *engine, unsigned port)
{
    return engine->set.part != NULL ? engine->set.part->port[port] : port;
}

/* Returns the rank of the neighbour in the whole torus. */
static inline uint32_t engine_neighbour(const struct engine *engine, unsigned port)
{
    const struct router *r = engine->set.router;

    return torus_neighbour(router_torus(r), router_rank(r), engine_port(engine, port));
}

/* Writes the name of this node's port for a port of the engine; `name` has room for
 * TORUS_PORT_NAME_SIZE. Returns name. */
static inline char *engine_port_name(const struct engine *engine, unsigned port, char *name)
{
    const struct router *r = engine->set.router;

    return torus_port_name(router_torus(r), router_rank(r), engine_port(engine, port), name);
}

/* Tells the router that the engine has frames for this port again. */
static inline void engine_wake_port(const struct engine *engine, unsigned port)
{
    router_wake(engine->set.router, engine_port(engine, port));
}

/* Returns the call with which the engine's data is marked that leaves by a port; all zero if it belongs to none. */
static inline struct peer_group_call engine_call(const struct engine *engine, unsigned port)
{
    struct peer_group_call call = {0};

    if (engine->set.call != NULL)
        call = *engine->set.call;
    if (engine->set.part != NULL && engine->set.part->channel > 0)
        call.channel = engine->set.part->channel + port;
    return call;
}

/* --- the window of rounds ---
 *
 * The rounds of an engine that are under way: at most engine_setup.window of them, the oldest of which is
 * engine.rounds_finished. Numbers of rounds are never used twice. A round that ends makes room for a later
 * one, which uses the same slot and the memory that the engine keeps there. */

/* The first member of the rounds of every engine. */
struct window_round {
    uint64_t number;
    uint64_t left;      /* pieces or chunks that are not done, as the engine counts them */
    uint64_t delivered; /* blocks from others */
    bool open;          /* it is under way */
    bool admitted;
};

struct round_window {
    struct engine *engine;
    void *slots; /* by number modulo the window */
    size_t size; /* bytes of a slot */
};

/* Makes slots of `size` bytes, all zero. The engine is borrowed; its setup must be complete. Returns 0, or
 * -1 if there is no memory; then there is nothing to free. */
int round_window_init(struct round_window *w, struct engine *engine, size_t size);
/* Frees the slots. The engine has freed what the slots own. */
void round_window_free(struct round_window *w);

/* Returns the slot of a round; another round may still use it. */
static inline void *round_window_slot(const struct round_window *w, uint64_t number)
{
    return (char *)w->slots + number % w->engine->set.window * w->size;
}

/* Returns the round, or NULL if it is not under way. */
static inline void *round_window_find(const struct round_window *w, uint64_t number)
{
    struct window_round *r = round_window_slot(w, number);

    return r->open && r->number == number ? r : NULL;
}

/* Returns the oldest round under way from this number on, or NULL if there is none. */
static inline void *round_window_next(const struct round_window *w, uint64_t number)
{
    const uint64_t end = w->engine->rounds_finished + w->engine->set.window;
    void *r = NULL;

    while (r == NULL && number < end)
        r = round_window_find(w, number++);
    return r;
}

/* Finds the number of the round that a frame names (modulo ENGINE_ROUND_MASK + 1). Returns 0, or -1 with
 * *e: the round is not in the window. */
int round_window_number(const struct round_window *w, uint32_t named, uint64_t *number,
                        struct error *e);

/* Ends the oldest round if it is complete: it was admitted, nothing of it is left to do, and the sink has
 * written everything. Returns whether it did. */
bool round_window_end(const struct round_window *w);
