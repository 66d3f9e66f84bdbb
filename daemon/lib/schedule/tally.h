/* Counts by 64-bit key: how many blocks each combined message holds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/algorithm.h"

struct tally_entry {
    uint64_t key;
    uint64_t count; /* 0: an empty place of the table */
};

/* A hash table with open addressing, at most half full, until it is sorted. Zero-initialise it.
 * Keys can come from a file that was made so that all of them want the same place. So when finding
 * keys takes too long, the entries move to places that depend on the address of the table, which
 * cannot be foreseen. */
struct tally {
    struct tally_entry *at;
    size_t count;        /* different keys */
    size_t room;         /* 0 or a power of two */
    uint64_t multiplier; /* determines the places of keys */
    uint64_t finds;      /* finds since the entries moved last */
    uint64_t probes;     /* places looked at in these finds */
    uint64_t earlier;    /* places looked at before that */
};

/* Add one, or `count` of at least one, to the count of a key. Return 0, or -1 without memory. Must
 * not be called after tally_sort(). */
int tally_add(struct tally *t, uint64_t key);
int tally_add_many(struct tally *t, uint64_t key, uint64_t count);

/* Turns the table into a list, at[0..count-1], in ascending order of keys, and frees unused memory. */
void tally_sort(struct tally *t);

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
