/* Pieces of files (cut.h) carry a digest from their source to their destination. So the destination finds
 * damage on the way, also in a relay's memory, and can name the source, the destination and the bytes.
 *
 * The source computes the digest as the bytes leave, and sends it in the head of the frame that has the
 * piece's last byte (StreamedData.digests, SteppedData.digests). A relay that holds the piece keeps the
 * digest with it and passes it on, even if it cuts other frames; it computes nothing. The destination
 * computes the digest again, and compares. The digest covers the name of the piece, so the bytes of another
 * piece do not match either.
 *
 * A piece that does not match is sent again while the exchange continues (exchange/piece_repair.c).
 *
 * Pieces of less than PIECE_DIGEST_LEAST bytes carry no digest. Their digests are part of the sums over all
 * pieces that were sent and delivered at all nodes, which the root compares at the end.
 *
 * Each byte of a file is digested once where it leaves and once where it arrives, as one run if a frame has
 * the whole piece. Generated blocks need no digests, because the destination knows every byte. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/base/slab.h"
#include "daemon/torusd/engine/blocks.h"
#include "proto/error.h"

#define PIECE_DIGEST_LEAST 256u /* least bytes of a piece that carries a digest */

/* The bytes from `begin` on of the block that `source` has for `destination`; for all nodes, if both are
 * the same. */
struct block_piece {
    uint32_t source, destination;
    uint64_t begin;
    uint32_t length;
};

struct piece_state;

/* The digest of one piece. Zero-initialise. */
struct piece_mark {
    uint64_t digest; /* valid when the whole piece has passed, or a frame has brought the digest */
    struct piece_state *state; /* while a part of the piece has passed */
};

/* Memory for digests that are being computed. Zero-initialise; piece_states_free() also ends the digests
 * under way. */
struct piece_states {
    struct piece_state *all, *unused;
};

/* Frees the memory. Digests under way become invalid. */
void piece_states_free(struct piece_states *states);

/* Adds the next bytes of the piece, from `offset` on, to its digest. At the end of the piece mark->digest
 * is the digest. Returns 0, or -1 if there is no memory. */
int piece_pass(struct piece_states *states, struct piece_mark *mark,
               const struct block_piece *piece, uint32_t offset, const struct extent *bytes);

/* Fills *e with an error that names the piece: it arrived damaged at the sink of node `rank`. */
void piece_is_damaged(const struct block_piece *piece, const struct sink *sink, uint32_t rank,
                      struct error *e);

/* Whether a piece of `length` bytes carries a digest. */
static inline bool piece_has_digest(uint32_t length)
{
    return length >= PIECE_DIGEST_LEAST;
}
