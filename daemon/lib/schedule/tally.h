/* Counts by 64-bit key: how many blocks each combined message holds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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

/* Adds one to the count of a key. Returns 0, or -1 without memory. Must not be called after
 * tally_sort(). */
int tally_add(struct tally *t, uint64_t key);

/* Turns the table into a list, at[0..count-1], in rising order of keys, and frees unused memory. */
void tally_sort(struct tally *t);

/* Frees the entries; leaves an empty tally. */
void tally_free(struct tally *t);
