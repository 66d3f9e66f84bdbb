/* Counts by 64-bit key: how many blocks each combined message holds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/algorithm.h"

struct tally_entry {
    uint64_t key;
    uint64_t count;
};

#define TALLY_RECENT_BITS 10

/* A list of entries, several of which can have the same key until it is sorted. A key that was
 * added not long ago is found in it. Zero-initialise it. */
struct tally {
    struct tally_entry *at;
    size_t count, room;
    size_t sorted; /* entries after the last sort */
    uint32_t
        recent[1u << TALLY_RECENT_BITS]; /* where keys may be: by some bits of their products */
};

/* Add one, or `count` of at least one, to the count of a key. Return 0, or -1 without memory. */
int tally_add(struct tally *t, uint64_t key);
int tally_add_many(struct tally *t, uint64_t key, uint64_t count);

/* Makes at[0..count-1] one entry for each key, in ascending order, and frees unused memory. Returns 0, or -1 without memory. */
int tally_sort(struct tally *t);

/* Frees the entries; leaves an empty tally. */
void tally_free(struct tally *t);

/* Combined messages as keys of a tally (tally.h). A key stands for the messages that start at the
 * nodes of one class: moves (routes.h) turn the message of one node into those of the others. The
 * order of the keys is that of the steps. */

#define MESSAGE_MAX_STEP ((1u << 23) - 1) /* the highest step for which a key has room */

/* `class` may be any number below TORUS_MAX_NODES, so that the rank of a node fits as well. */
static inline uint64_t message_key(const struct torus *t, uint32_t class, const struct leg *leg)
{
    return (uint64_t)leg->step << 41 | (uint64_t) class << 21 |
           (uint64_t)torus_port(t, leg->dim, leg->direction) << 16 | leg->hops;
}

/* The parts of a key. */
static inline uint32_t message_key_step(uint64_t key)
{
    return (uint32_t)(key >> 41);
}

static inline uint32_t message_key_class(uint64_t key)
{
    return (uint32_t)(key >> 21) & (TORUS_MAX_NODES - 1);
}

static inline struct leg message_key_leg(const struct torus *t, uint64_t key)
{
    unsigned port = (unsigned)(key >> 16) & (TORUS_MAX_PORTS - 1);
    return (struct leg){.step = message_key_step(key),
                        .hops = (uint16_t)key,
                        .dim = (uint8_t)torus_port_dim(t, port),
                        .direction = (int8_t)torus_port_direction(t, port)};
}
