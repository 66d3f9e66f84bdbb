/* How a reduction cuts blocks into pieces, one for each tree and round, and pieces into chunks. */
#pragma once

#include "daemon/torusd/engine/reducing/state.h"

/* Returns how many bytes the tree's piece has in the round that begins at `begin` of the block, and sets
 * *at to where the piece begins in the block. Uses the setup, the trees and the element only. */
uint32_t reducing_piece_length(const struct reducing *s, uint64_t begin,
                               const struct reduction_tree *tree, uint64_t *at);

/* Returns how many chunks a piece of this length has. An empty piece has none, unless it is sent to say
 * that all nodes have called (a gate or barrier). */
uint32_t reducing_count_chunks(const struct reducing *s, const struct reduction_tree *tree,
                               uint32_t length);

/* Returns how many bytes a chunk has, the same at all nodes: few compared with what a channel carries in a
 * round, so that the levels of a tree overlap; but at most as many as a frame may have. */
uint32_t reducing_choose_chunk(const struct engine_setup *set, const struct reduction_trees *trees,
                               uint32_t element);
