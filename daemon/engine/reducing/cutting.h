/* How a reduction cuts blocks into pieces, one for each tree and round, and those into chunks. */
#ifndef TORUSD_ENGINE_REDUCING_CUTTING_H
#define TORUSD_ENGINE_REDUCING_CUTTING_H

#include "daemon/engine/reducing/state.h"

/* Bytes of the tree's piece in the round that begins at `begin` of the block. Sets *at to where it begins there.
 * Uses the setup, the trees and the element only. */
uint32_t reducing_piece_length(const struct reducing *s, uint64_t begin,
                               const struct reduction_tree *tree, uint64_t *at);

/* How many chunks a piece of this length has. Nothing is sent of an empty piece, unless all that is to be said is
 * that everybody has come. */
uint32_t reducing_count_chunks(const struct reducing *s, const struct reduction_tree *tree,
                               uint32_t length);

/* Bytes of a chunk, the same at all nodes: small beside what a channel carries in a round, so that the levels of
 * a tree overlap, and else as much as a frame may have. */
uint32_t reducing_choose_chunk(const struct engine_setup *set, const struct reduction_trees *trees);

#endif
