/* A table for all members that says which algorithm carries out which operation at which size. The first member
 * makes it when the group or a part is opened, and all members use it, because members that chose by themselves
 * might choose differently. */
#pragma once

#include "daemon/torusd/planning/choose.h"

#define CHOICES_MOST 16u
#define TABLE_BYTES 1024u /* size of an encoded struct algorithm_table */

/* Choices for blocks of 2^octave bytes or more, including digests; in rising order. */
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

/* Makes the table. `found`: routes that were found on this network, if it has other graphs than rings and lines. The
 * table then only says from which size on allgathers and broadcasts use `disjoint` trees. Returns 1; 0 while schedules
 * are being counted (the part's planner wakes); or -1. */
int algorithm_table_make(struct algorithm_table *d, struct planner *planner, const struct torus *t,
                         const struct predict_costs *costs, const struct detour *found,
                         struct error *e);
/* Logs the table of this group. */
void algorithm_table_log(const struct algorithm_table *d, const char *group);
/* Encodes a table into TABLE_BYTES bytes at `table`. Returns 0, or -1 with *e. */
int algorithm_table_pack(const struct algorithm_table *d, uint8_t *table, struct error *e);
/* Decodes a table, and checks it for this torus. Returns 0, or -1 with *e. */
int algorithm_table_unpack(struct algorithm_table *d, const uint8_t *table, const struct torus *t,
                           struct error *e);
