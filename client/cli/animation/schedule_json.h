/* The messages of a schedule, step by step, as a page plays them (animation.js). */
#pragma once

#include <jansson.h>

#include "client/cli/animation/animation.h"

/* Returns an object, which the caller owns:
 *
 *     name, summary, paper, operation, ports, segments, streaming     of the algorithm
 *     startups, transmission, bound, contended                        of the report, in blocks
 *     gather           true: a block is for all nodes, and known by its source alone
 *     measured, run    how many seconds each step took in a run, and the run's id; only if it is known
 *     steps            of each step: {name, why, messages}; a message is [node, port, hops, block ...], where a block is
 *                      (segment * nodes + source) * nodes + destination, or with `gather` segment * nodes + source
 *
 * *blocks counts the blocks in all messages, and must not become more than ANIMATION_MOST_BLOCKS. Returns NULL with *e. */
json_t *schedule_json(const struct torus *t, const struct animated *a, uint32_t source,
                      uint64_t *blocks, struct error *e);
