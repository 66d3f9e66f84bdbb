/* How much of everything a group may have under way. */
#ifndef TORUSD_GROUP_RECORD_LIMITS_H
#define TORUSD_GROUP_RECORD_LIMITS_H

#include "daemon/engine/digest.h"
#include "daemon/engine/reducing.h"

/* Of the limits on memory; tests that play many groups take a part of them. */
#ifndef GROUP_SCALE
#define GROUP_SCALE 1u
#endif

#define GROUP_EAGER_MOST ((UINT64_C(256) << 10) / GROUP_SCALE)

/* Bytes that the calls of a part may use at a node. */
struct limits {
    uint64_t early;  /* frames that have come before their calls */
    uint64_t rounds; /* what a large call has under way */
    uint64_t eager; /* a call of so many bytes or less needs no leave of the others to start. Copies
                      * of six of them may be held (GROUP_COPIES) */
};

/* Of two that are under way, of two that others may not be through with, and of those of which nobody
 * knows it: of one more than fit into the size of one. */
#define GROUP_COPIES 6u

/* Calls in a row that no member learns from whether the others have made them; before one more, or one with
 * which they would have more bytes than one that is eager may have, another one is put in that tells it. */
#define GROUP_UNPROVEN_MOST 8u
/* Calls that frames may belong to, from the first that is not over here. */
#define GROUP_WINDOW 32u

/* Bytes of a vector, or a block, on its way to a neighbour: with the digests of its frames. */
static inline uint64_t limits_wire_bytes(uint64_t bytes)
{
    return bytes + (bytes / REDUCTION_LEAST_CHUNK + 1) * DIGEST_SIZE;
}

/* Of the part of a torus `whole` that is the torus `t`, damaged or not: all parts that there can be,
 * each with a large call under way, are within group_memory(whole). */
struct limits limits_of(const struct torus *whole, const struct torus *t, bool damaged);
/* Bytes that a group may use at a node. */
uint64_t group_memory(const struct torus *whole);

#endif
