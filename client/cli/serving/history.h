/* The rates of an hour, a point a second. Memory is bounded: two bytes for each point. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HISTORY_SECONDS 3600u
#define HISTORY_STEP 10u /* seconds of a reduced point */
#define HISTORY_POINTS (HISTORY_SECONDS / HISTORY_STEP)

/* Rates of several channels, which are numbered from 0. */
struct history {
    size_t channels;
    uint64_t newest; /* the last second; 0: there is none yet */
    uint16_t *code;  /* by channel, and second modulo HISTORY_SECONDS */
};

/* Reduced points, the oldest first; below 0: not known. */
struct history_points {
    double mean[HISTORY_POINTS], peak[HISTORY_POINTS];
};

/* Begins without points. Returns 0, or -1 if memory is short. The caller gives *h to history_free(). */
int history_begin(struct history *h, size_t channels);
void history_free(struct history *h);

/* Moves on to a second (of a steady clock, above 0): what was before the hour is forgotten, and the new seconds are not
 * known. An earlier second changes nothing. */
void history_move(struct history *h, uint64_t second);
/* Sets the rate of a channel in the last `seconds` seconds, in any unit; below 0: not known. Its error is below 0.1 %. */
void history_set(struct history *h, size_t channel, uint64_t seconds, double rate);

/* Fills *points with the sum of several channels: the mean and the highest second of each HISTORY_STEP seconds.
 * A channel that is not known in a second does not count in this second. */
void history_reduce(const struct history *h, const size_t *channels, size_t count,
                    struct history_points *points);
