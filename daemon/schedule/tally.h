/* Counts by 64-bit key: how many blocks each combined message holds. */
#ifndef TORUSD_SCHEDULE_TALLY_H
#define TORUSD_SCHEDULE_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct tally_entry {
    uint64_t key;
    uint64_t count; /* 0: an empty place in the table */
};

/* Zero-initialise. Open addressing, at most half full, until it is sorted. Keys may come from a file:
 * where they lie depends on the address of the table, so that nobody can choose keys that meet. */
struct tally {
    struct tally_entry *at;
    size_t count; /* different keys */
    size_t room;  /* 0 or a power of two */
    uint64_t multiplier;
    unsigned shift;  /* 64 - log2(room) */
    uint64_t probes; /* places that were looked at so far */
};

/* Adds one to the count of a key. Returns 0, or -1 if there is no memory. Not after tally_sort(). */
int tally_add(struct tally *t, uint64_t key);

/* Turns the table into a list, at[0..count-1], in ascending order of keys, and frees unused memory. */
void tally_sort(struct tally *t);

/* Frees the entries; leaves an empty tally. */
void tally_free(struct tally *t);

#endif
