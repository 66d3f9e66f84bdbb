/* Reductions: every node has a vector, with one block for each owner, and each owner gets the combination of
 * all nodes' blocks for it, element by element. Each owner has a tree (schedule/reduction.h): a node
 * combines its own block with those from its children, and passes the result to its parent. With `everywhere`
 * the owner sends the result back down the tree, to all nodes.
 *
 *     trees of all nodes        reduce-scatter; everywhere: allreduce
 *     trees of one owner        reduce to it: no result comes back, and a node has finished when it has
 *                               passed on its own part and its children's parts
 *     one tree                  everywhere: allreduce for short vectors
 *     one tree, empty block     a gate: the root learns that all nodes have called; everywhere: a barrier
 *
 * Order. A node combines an element of its own block with those of its children by rising port: ((own op
 * child 0) op child 1) ...; a child sends what it has combined in the same way. The order of arrival makes no
 * difference, so the result has the same bits every time. It has the same bits at all nodes, because each
 * block is combined only once, by its owner's tree. If blocks have several segments, the tree of an element
 * depends on its place in the round, and so on round_bytes and the size of the block.
 *
 * With REDUCTION_AVG the owner divides the sum, before it sends the result back.
 *
 * Blocks. source->size(owner) is the same at all nodes, and a multiple of the element's size. A block is read
 * front to back, and copied: the engine does not use the source's memory after it has read it. The result is
 * written to the sink as the block from `owner`, front to back. Nothing is sent or written for an empty
 * block, except that with one tree an empty piece crosses each channel of the tree.
 *
 * Pieces (a segment of a block in a round) travel in chunks of the same length at all nodes, so that the
 * levels of a tree overlap; elements are never split. A frame has one chunk of each piece that it names, and
 * then, unless `unchecked`, a digest of 8 bytes of these chunks. The receiver checks the digest before it
 * combines anything. If the digest does not match, the engine fails with ERROR_DAMAGED, and the text names
 * the neighbour and the port.
 *
 * Memory. A child may be ahead of its slowest sibling by all admitted rounds, so a node keeps at most the pieces of
 * all children in these rounds, and with `everywhere` the results. Chunks of more than 4 KiB stay in the slabs that
 * they were read into, as blocks do in the other engines. */
#pragma once

#include "daemon/lib/base/arithmetic.h"
#include "daemon/lib/schedule/reduction.h"
#include "daemon/torusd/engine/engine.h"

struct reducing_options {
    enum reduction_type type;
    enum reduction_operator operation; /* defined for the type (reduction_allowed()) */
    bool everywhere;  /* send the result to all nodes. All options must be the same at all nodes */
    bool unchecked;   /* frames have no digests */
    uint32_t members; /* by which the owner divides with REDUCTION_AVG */
};

/* Returns an engine that accepts frames of the first `window` rounds at once; engine_free() frees it. Setup
 * and trees are borrowed, options copied. one_port, gather, uniform and block_bytes of the setup are not
 * used; `segments` is that of the trees; the source knows the sizes; round_bytes must be a multiple of the element's
 * size; `idle` must be false, because every node contributes. On failure, returns NULL with *e: memory is short, or the
 * setup is invalid (ERROR_USAGE). */
struct engine *reducing_new(const struct engine_setup *setup, const struct reduction_trees *trees,
                            const struct reducing_options *options, struct error *e);
