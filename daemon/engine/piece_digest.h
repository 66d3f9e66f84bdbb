/* Pieces of files (cut.h) carry a digest of their own from their source to where they arrive, so that what
 * is damaged in between, in a relay's memory too, is known by its name: from where, to where, which bytes.
 *
 * The source takes the digest of the bytes as they leave, and it travels in the head of the frame that
 * has the piece's last byte (StreamedData.digests, SteppedData.digests). However frames are cut anew on
 * the way, a relay that holds the piece keeps the number with it and passes it on; none computes it. Where
 * the piece arrives the digest is taken once more, and compared. It covers the piece's name, so bytes
 * that are taken for those of another piece do not match either.
 *
 * What does not match is sent again while the exchange goes on (exchange/phases/piece_repair.c).
 *
 * Pieces of less than PIECE_DIGEST_LEAST bytes carry none. Their digests are in the sums over all pieces
 * that have left and that have been delivered, at all nodes, which the root compares at the end.
 *
 * Each byte of a file is digested once where it leaves and once where it arrives, as one run where
 * the piece is whole in a frame. Generated blocks need no digests: who gets them knows every byte. */
#ifndef TORUSD_ENGINE_PIECE_DIGEST_H
#define TORUSD_ENGINE_PIECE_DIGEST_H

#include <stdbool.h>

#include "daemon/base/slab.h"
#include "daemon/engine/blocks.h"
#include "proto/error.h"

#define PIECE_DIGEST_LEAST 256u /* bytes of a piece that carries one */

/* The bytes from `begin` on of the block that `source` has for `destination`; for all, if that is
 * the source itself. */
struct block_piece {
    uint32_t source, destination;
    uint64_t begin;
    uint32_t length;
};

struct piece_state;

/* The digest of one piece. Zero-initialise. */
struct piece_mark {
    uint64_t digest;           /* once all of it has passed, or the digest has come with it */
    struct piece_state *state; /* while some has */
};

/* What is needed while digests are taken. Zero-initialise; piece_states_free() also ends those that are
 * under way. */
struct piece_states {
    struct piece_state *all, *unused;
};

void piece_states_free(struct piece_states *states);

/* The next bytes of it, from `offset` on. At its end mark->digest is its digest. Returns 0, or -1 if there is
 * no memory. */
int piece_pass(struct piece_states *states, struct piece_mark *mark,
               const struct block_piece *piece, uint32_t offset, const struct extent *bytes);

/* Names it, as it has arrived damaged at the sink of node `rank`: fills *e. */
void piece_is_damaged(const struct block_piece *piece, const struct sink *sink, uint32_t rank,
                      struct error *e);

static inline bool piece_has_digest(uint32_t length)
{
    return length >= PIECE_DIGEST_LEAST;
}

#endif
