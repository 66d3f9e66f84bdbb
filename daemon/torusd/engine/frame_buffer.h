/* The bytes that an engine moves. Bytes that arrive for other nodes wait in a hold until they leave; bytes
 * for this node go to the sink; frames are loaded from holds and from the source.
 *
 * Usually bytes stay in the slabs that they were read into, and frames refer to them there. If all pieces
 * are so small that copying costs less than references, each hold has room for a copy of its own, and a
 * frame is one run of copied bytes. Engines need not know which of the two is used.
 *
 * If pieces carry digests (piece_digest.h, engine_setup.digests), these functions compute and compare them.
 *
 * A failure here fails the engine (engine_failed()); the functions then do nothing more. */
#pragma once

#include <string.h>

#include "daemon/torusd/engine/chunks.h"
#include "daemon/torusd/engine/engine.h"
#include "daemon/torusd/engine/piece_digest.h"

#define FRAME_BUFFER_COPIED_MOST 64u /* bytes of a piece that is copied, at most */

struct frame_buffer {
    struct engine *engine;
    uint32_t room; /* bytes of a hold for its copy; 0: bytes are not copied */
    struct slab_writer body;
    struct slab_writer kept; /* waiting bytes that do not stay in the slab in which they arrived */
    struct piece_states digests; /* under way */
    struct chunks waiting;       /* of all holds */
};

/* Bytes of one piece on their way. Made empty by frame_buffer_hold(). */
struct hold {
    union {
        struct chain chain;
        uint8_t *copy;
    };
};

/* The position of one reader of a hold that has several readers. Zero-initialise for the start of the
 * hold. */
struct hold_place {
    uint32_t chunk; /* index + 1; 0: the first chunk of the hold */
    uint32_t offset;
};

/* This node's block for itself: up to where it has been delivered in a round. */
struct own_block {
    uint64_t at; /* initially cut_round.begin */
    bool delivered;
};

/* Initialises *c. `longest` is the length in bytes of the longest piece (cut_longest()). `engine` is
 * borrowed. */
void frame_buffer_init(struct frame_buffer *c, struct engine *engine, uint32_t longest);
/* Drops the contents of all holds, and frees everything. */
void frame_buffer_close(struct frame_buffer *c);

/* Sets *room to memory for the copies of `holds` holds, which the caller frees; NULL if none is needed.
 * Returns 0, or -1 if there is no memory; that does not fail the engine. */
int frame_buffer_room(const struct frame_buffer *c, size_t holds, uint8_t **room);
/* Returns the hold with this index in `room`, empty. */
struct hold frame_buffer_hold(const struct frame_buffer *c, uint8_t *room, size_t index);

/* frame_buffer_put() for bytes that are not copied. */
void frame_buffer_put_chunk(struct frame_buffer *c, struct hold *hold, const struct extent *piece);

/* Appends the bytes of `piece` to a hold, which has received `offset` bytes so far. */
static inline void frame_buffer_put(struct frame_buffer *c, struct hold *hold, uint32_t offset,
                                    const struct extent *piece)
{
    if (c->room > 0)
        memcpy(hold->copy + offset, piece->data, piece->length);
    else
        frame_buffer_put_chunk(c, hold, piece);
}

/* Returns how many bytes of a piece, `rest` of which can leave, to load into a frame that should have about
 * `fill` bytes. A short rest beyond `fill` is included, because a frame of its own would cost every node on
 * its way a message. (Blocks of programs often have a power of two of bytes, and a digest behind them.) A
 * frame has at most FRAME_BUFFER_FRAME_MOST(fill) bytes. */
uint32_t frame_buffer_fits(const struct outgoing *frame, uint32_t fill, uint32_t rest);
#define FRAME_BUFFER_FRAME_MOST(fill) ((fill) + (fill) / 16)

/* Loads up to `most` bytes of the hold, from `offset` on, into the frame's body, as many as it has extents
 * for. If `place` is not NULL, the bytes stay in the hold for other readers; otherwise they leave it. Returns
 * how many bytes were loaded. */
uint32_t frame_buffer_load(struct frame_buffer *c, struct hold *hold, uint32_t offset,
                           struct hold_place *place, uint32_t most, struct outgoing *frame);
/* Loads bytes of a piece of this node from the source, like frame_buffer_load(); fewer, or none, if the
 * source does not have them yet. `mark` is that of the piece, if it has a digest; or NULL. */
uint32_t frame_buffer_load_own(struct frame_buffer *c, const struct block_piece *piece,
                               uint32_t offset, struct piece_mark *mark, uint32_t most,
                               struct outgoing *frame);
/* Empties the hold. */
void frame_buffer_drop(struct frame_buffer *c, struct hold *hold);

/* Delivers bytes of a piece from another node to the sink, from `offset` in the piece on; `mark` is that of
 * the piece, if it has a digest, or NULL. Returns 0, or -1 if the engine has failed. If the sink finds
 * damage, the error names the piece. */
int frame_buffer_deliver(struct frame_buffer *c, const struct block_piece *piece, uint32_t offset,
                         struct piece_mark *mark, const struct extent *bytes);
/* To be called when the whole piece has been delivered: compares its digest with the one from its source,
 * if it has one (piece_has_digest()). Returns 0, also if the piece will be repaired (engine.damaged); or -1
 * with the engine failed: ERROR_DAMAGED. */
int frame_buffer_compare(struct frame_buffer *c, const struct block_piece *piece,
                         const struct piece_mark *mark, uint64_t sent);
/* Delivers a piece without bytes: the sink may have to make a file. */
void frame_buffer_deliver_nothing(struct frame_buffer *c, uint32_t origin, uint64_t offset);
/* Delivers the bytes of node `me`'s block for itself that the source has, up to the end of the round (no link
 * carries that block). Sets own->delivered at the end. */
void frame_buffer_deliver_own(struct frame_buffer *c, uint32_t me, const struct cut_round *cut,
                              struct own_block *own);

/* Reads up to `most` bytes, from `offset` on, of a piece of this node's block for all nodes, and delivers
 * them here, too. Returns true with *bytes, whose reference the caller drops; or false: the source does not
 * have them yet. */
bool frame_buffer_read_own(struct frame_buffer *c, const struct block_piece *piece, uint32_t offset,
                           struct piece_mark *mark, uint32_t most, struct extent *bytes);

/* Makes an empty frame, which the caller owns until frame_buffer_ship(). Returns NULL if there is no
 * memory. */
struct outgoing *frame_buffer_new_frame(struct frame_buffer *c);
/* Puts received bytes into a frame that is relayed at once; its length is already set. */
void frame_buffer_pass_on(struct frame_buffer *c, struct outgoing *frame,
                          const struct extent *bytes);
/* Takes over a frame, encodes its head, counts its bytes and returns it, ready to leave by the port. If it
 * is not `loaded`, or the engine has failed, frees it and returns NULL. */
struct outgoing *frame_buffer_ship(struct frame_buffer *c, unsigned port, struct outgoing *frame,
                                   const struct peer_message *message, bool loaded);
