/* How much counters rose in the last hour, because a fault that ended long ago is not a present fault. */
#pragma once

#include <stdint.h>

#define LAST_HOUR_VALUES 6u
#define LAST_HOUR_NOTES 13u

/* Begin with all bytes 0. */
struct last_hour {
    uint32_t notes; /* this many were taken; the last ones are kept */
    struct last_hour_note {
        uint64_t at;
        uint64_t value[LAST_HOUR_VALUES];
    } note[LAST_HOUR_NOTES];
};

/* Notes the counters, unless they were noted in the last five minutes. `now` is a steady clock, in nanoseconds. */
void last_hour_note(struct last_hour *h, uint64_t now, const uint64_t value[LAST_HOUR_VALUES]);

/* Sets `risen` to what the counters have counted since the oldest note of the last hour. If all notes are older, since
 * the last one. A counter that is lower than in the note has begun again at 0. Returns the time since that note, in
 * nanoseconds, and 0 with all `risen` 0 if there is none. */
uint64_t last_hour_risen(const struct last_hour *h, uint64_t now,
                         const uint64_t value[LAST_HOUR_VALUES], uint64_t risen[LAST_HOUR_VALUES]);
