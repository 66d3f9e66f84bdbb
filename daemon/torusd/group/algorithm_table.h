/* A table for all members that says which algorithm carries out which operation at which size. The first member
 * makes it when the group or a part is opened, and all members use it, because members that chose by themselves
 * might choose differently. */
#pragma once

#include "daemon/torusd/planning/choose.h"

struct call;
struct checked_call;

#define CHOICES_MOST 16u
/* Size of an encoded struct algorithm_table, and of a byte that is not 0 if a member has no memory for the part. */
#define TABLE_BYTES 1024u

/* Choices for blocks of 2^octave bytes or more, including digests; in ascending order. */
struct choices {
    unsigned count;
    struct choice {
        uint32_t octave;
        const struct algorithm *algorithm;
        enum mode mode;
    } choice[CHOICES_MOST];
};

struct algorithm_table {
    struct choices exchange;
    struct choices gather;
    struct choices broadcast;     /* also for reduce, with its routes reversed */
    uint64_t long_reduction;      /* bytes from which a vector is combined on all trees */
    uint64_t allgather_reduction; /* bytes up to which an allgather is carried out as a reduction */
};

/* Returns the choice for blocks of that size. */
const struct choice *algorithm_table_find(const struct choices *list, uint64_t block_bytes);
/* Decodes a table, and checks it for this torus. Returns 0, or -1 with *e. */
int algorithm_table_unpack(struct algorithm_table *d, const uint8_t *table, const struct torus *t,
                           struct error *e);

/* The call that opens a part: the first member makes the part's table of algorithms, and all members use it. */

/* Prepares such a call: a vector of bytes to which only the first member contributes, but each whether it lacks memory.
 * `mask`: dimensions of the part; 0: the whole. Returns 0 with *what, or -1 with *e. */
int part_table_call(struct checked_call *what, uint32_t mask, struct error *e);
/* Reserves memory for the part, if that has not been tried, and contributes whether there was none. */
void part_table_begin(const struct call *c);
/* Whether this member makes the table of such a call. */
bool part_table_is_made_here(const struct call *c);
/* Makes the table. Returns 1; 0 while schedules are being counted; or -1 with *e. */
int part_table_make(struct call *c, struct error *e);
/* Takes the table that has arrived, so that the part's calls can be carried out. Returns 0, or -1 with *e. */
int part_table_take(const struct call *c, struct error *e);
