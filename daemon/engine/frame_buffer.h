/* The bytes that an engine moves: what comes in for other nodes waits in a hold until it leaves,
 * what is for this node goes to the sink, and frames are loaded from holds and from the source.
 *
 * Usually bytes stay in the slabs that they were read into, and frames refer to them there. Where
 * all pieces are so small that a copy costs less than to keep track of them, each hold has room for
 * a copy of its own, and a frame is one run of copied bytes. Engines need not know which it is.
 *
 * Where pieces carry digests (piece_digest.h, engine_setup.digests) they are taken and compared here.
 *
 * Whatever fails here fails the engine (engine_failed()); the functions then do nothing more. */
#ifndef TORUSD_ENGINE_FRAME_BUFFER_H
#define TORUSD_ENGINE_FRAME_BUFFER_H

#include <string.h>

#include "daemon/engine/engine.h"
#include "daemon/engine/piece_digest.h"

#define FRAME_BUFFER_COPIED_MOST 64u /* bytes of a piece */

/* A run of bytes that waits. Parcels are chained by index. */
struct parcel {
    struct extent bytes; /* slab NULL: not in use */
    uint32_t next;
};

struct frame_buffer {
    struct engine *engine;
    uint32_t room; /* of a hold for its copy; 0: bytes are not copied */
    struct slab_writer body;
    struct slab_writer kept;     /* of what waits, what does not stay in the slab that it came in */
    struct piece_states digests; /* under way */
    struct parcel *parcel;
    uint32_t parcels, unused; /* how many there are; the first that is not in use */
};

/* Bytes of one piece on their way. Made empty by frame_buffer_hold(). */
struct hold {
    union {
        struct {
            uint32_t first, last; /* parcels */
        };
        uint8_t *copy;
    };
};

/* Where a reader of a hold that is loaded several times stands. Zero-initialise for its start. */
struct hold_place {
    uint32_t parcel; /* its index + 1; 0 is the first of the hold */
    uint32_t offset;
};

/* Our block for ourselves: up to where it has been delivered in a round. */
struct own_block {
    uint64_t at; /* initially cut_round.begin */
    bool delivered;
};

/* `longest`: bytes of the longest piece (cut_longest()). `engine` is borrowed. */
void frame_buffer_init(struct frame_buffer *c, struct engine *engine, uint32_t longest);
/* Drops all that is in any hold. */
void frame_buffer_close(struct frame_buffer *c);

/* Sets *room to memory for the copies of so many holds; the caller frees it. NULL if none is
 * needed. Returns 0, or -1 if there is no memory; the engine does not fail of that. */
int frame_buffer_room(const struct frame_buffer *c, size_t holds, uint8_t **room);
/* An empty hold, the one with this index among those that `room` is for. */
struct hold frame_buffer_hold(const struct frame_buffer *c, uint8_t *room, size_t index);

/* frame_buffer_put(), where bytes are not copied. */
void frame_buffer_put_parcel(struct frame_buffer *c, struct hold *hold, const struct extent *piece);

/* The bytes of `piece` follow those that the hold has: `offset` of them have come already. */
static inline void frame_buffer_put(struct frame_buffer *c, struct hold *hold, uint32_t offset,
                                    const struct extent *piece)
{
    if (c->room > 0)
        memcpy(hold->copy + offset, piece->data, piece->length);
    else
        frame_buffer_put_parcel(c, hold, piece);
}

/* How much of a piece, of which `rest` bytes can leave, goes into a frame that is filled up to `fill`. What lies
 * beyond it by a few bytes comes along, since a frame of its own costs all nodes on its way a message: blocks of
 * programs are often powers of two, with a digest behind each. At most FRAME_BUFFER_FRAME_MOST(fill) come together. */
uint32_t frame_buffer_fits(const struct outgoing *frame, uint32_t fill, uint32_t rest);
#define FRAME_BUFFER_FRAME_MOST(fill) ((fill) + (fill) / 16)

/* Moves up to `most` bytes of the hold, from `offset` on, into the frame's body, as many as it has
 * extents for. With a place they stay in the hold for other readers; without (NULL) they leave it.
 * Returns how many. */
uint32_t frame_buffer_load(struct frame_buffer *c, struct hold *hold, uint32_t offset,
                           struct hold_place *place, uint32_t most, struct outgoing *frame);
/* The same with bytes of a piece of our own, from the source; fewer, or none, if it has not got them
 * yet. `mark`: of the piece, if it has a digest; or NULL. */
uint32_t frame_buffer_load_own(struct frame_buffer *c, const struct block_piece *piece,
                               uint32_t offset, struct piece_mark *mark, uint32_t most,
                               struct outgoing *frame);
/* Empties the hold. */
void frame_buffer_drop(struct frame_buffer *c, struct hold *hold);

/* Bytes of a piece from another node, for us, from `offset` in it on; `mark` as above. Returns 0, or -1: the
 * engine has failed, by now. What the sink finds damaged is named. */
int frame_buffer_deliver(struct frame_buffer *c, const struct block_piece *piece, uint32_t offset,
                         struct piece_mark *mark, const struct extent *bytes);
/* All of the piece has been delivered: compares its digest with the one that it came with, if it has one
 * (piece_has_digest()). Returns 0, also if it is to come again (engine.damaged), or -1 with the engine
 * failed: ERROR_DAMAGED. */
int frame_buffer_compare(struct frame_buffer *c, const struct block_piece *piece,
                         const struct piece_mark *mark, uint64_t sent);
/* A piece without bytes for us: the sink may have to make a file. */
void frame_buffer_deliver_nothing(struct frame_buffer *c, uint32_t origin, uint64_t offset);
/* What the source has of the block of node `me` for itself, which no link carries, up to the end of
 * the round; sets own->delivered at the end. */
void frame_buffer_deliver_own(struct frame_buffer *c, uint32_t me, const struct cut_round *cut,
                              struct own_block *own);

/* Up to `most` bytes of a piece of our block for all from `offset` on, which are delivered here, too.
 * Returns true with *bytes, whose reference the caller drops; or false: the source has not got them
 * yet. */
bool frame_buffer_read_own(struct frame_buffer *c, const struct block_piece *piece, uint32_t offset,
                           struct piece_mark *mark, uint32_t most, struct extent *bytes);

/* Makes an empty frame, which the caller owns until frame_buffer_ship(). Returns NULL without memory. */
struct outgoing *frame_buffer_new_frame(struct frame_buffer *c);
/* Puts bytes that have come in into a frame that goes straight on, and whose length is set. */
void frame_buffer_pass_on(struct frame_buffer *c, struct outgoing *frame,
                          const struct extent *bytes);
/* Takes the frame over: gives it its head, counts its bytes and returns it, ready to leave by the
 * port. If it is not `loaded`, or the engine has failed, it is freed, and NULL returned. */
struct outgoing *frame_buffer_ship(struct frame_buffer *c, unsigned port, struct outgoing *frame,
                                   const struct peer_message *message, bool loaded);

#endif
