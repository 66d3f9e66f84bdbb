/* The answers that an initiator has collected, with a bound on the bytes of all of them together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/torusd/survey/survey.h"

struct collected_node {
    uint8_t *bytes;
    uint32_t length;
    uint32_t parts, have; /* bit i: part i has arrived */
    uint64_t at;          /* when it was complete */
    bool complete, too_large;
};

struct collected {
    uint32_t nodes;
    struct collected_node *node; /* by rank; NULL: nothing is collected */
    size_t total;                /* bytes of memory for answers */
};

/* Begins to collect. Returns 0, or -1 if there is no memory. */
int collected_begin(struct collected *c, uint32_t nodes);
/* Frees all answers. */
void collected_end(struct collected *c);

/* Stores a part, whose numbers and length have been checked. Parts that have arrived, or that contradict earlier
 * ones, are dropped. `now` is the time that is noted. Returns whether the answer of that node is complete now, and was not before. */
bool collected_add(struct collected *c, const struct peer_survey_answer *part, uint64_t now);

/* Fills *out with the answer of a node, if it is complete. */
void collected_view(const struct collected *c, uint32_t rank, struct survey_node *out);
