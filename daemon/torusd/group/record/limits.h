/* Limits on what a group may have under way. */
#pragma once

#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/engine/reducing.h"

/* Divides the limits on memory; tests that run many groups set it. */
#ifndef GROUP_SCALE
#define GROUP_SCALE 1u
#endif

#define GROUP_EAGER_MOST ((UINT64_C(256) << 10) / GROUP_SCALE)

/* Bytes that the calls of a part may use at a node. */
struct limits {
    uint64_t early;  /* early frames */
    uint64_t rounds; /* data of a large call that is under way */
    /* A call of at most this size starts without waiting for other members; up to GROUP_COPIES copies of such
     * calls are held. */
    uint64_t eager;
};

/* Copies of eager calls that may be held: of two calls under way, of two that other members may not have
 * finished, and of calls without a proof (as many as fit into the size of one eager call, and one more). */
#define GROUP_COPIES 6u

/* Most calls in a row from which members do not learn whether the others have made them. Before one more such
 * call, or one that would bring their bytes above those of an eager call, the group inserts a call that proves
 * it. */
#define GROUP_UNPROVEN_MOST 8u
/* How many calls frames may belong to, counted from the first call that is not over here. */
#define GROUP_WINDOW 32u

/* Returns the bytes of a vector or block on its way to a neighbour, including the digests of its frames. */
static inline uint64_t limits_wire_bytes(uint64_t bytes)
{
    return bytes + (bytes / REDUCTION_LEAST_CHUNK + 1) * DIGEST_SIZE;
}

/* Returns the limits of the part `t` of a torus `whole`, damaged or not. All possible parts, each with a large
 * call under way, fit into group_memory(whole). */
struct limits limits_of(const struct torus *whole, const struct torus *t, bool damaged);
/* Returns the bytes that a group may use at a node. */
uint64_t group_memory(const struct torus *whole);
