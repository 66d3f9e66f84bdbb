#include "daemon/lib/base/last_hour.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)
#define HOUR (3600 * SECOND)
/* A little less than five minutes, so that a timer of five minutes is never too early. */
#define STEP (295 * SECOND)

_Static_assert(LAST_HOUR_NOTES *STEP > HOUR, "the notes reach back an hour");

static const struct last_hour_note *last_note(const struct last_hour *h)
{
    return &h->note[(h->notes - 1) % LAST_HOUR_NOTES];
}

void last_hour_note(struct last_hour *h, uint64_t now, const uint64_t value[LAST_HOUR_VALUES])
{
    if (h->notes > 0 && now < last_note(h)->at + STEP)
        return;
    struct last_hour_note *note = &h->note[h->notes++ % LAST_HOUR_NOTES];
    note->at = now;
    memcpy(note->value, value, sizeof note->value);
}

/* The oldest note of the last hour; otherwise the last one. */
static const struct last_hour_note *find_note(const struct last_hour *h, uint64_t now)
{
    const uint32_t kept = h->notes < LAST_HOUR_NOTES ? h->notes : LAST_HOUR_NOTES;

    for (uint32_t i = h->notes - kept; i < h->notes; i++) {
        const struct last_hour_note *note = &h->note[i % LAST_HOUR_NOTES];
        if (note->at + HOUR >= now)
            return note;
    }
    return last_note(h);
}

uint64_t last_hour_risen(const struct last_hour *h, uint64_t now,
                         const uint64_t value[LAST_HOUR_VALUES], uint64_t risen[LAST_HOUR_VALUES])
{
    memset(risen, 0, LAST_HOUR_VALUES * sizeof *risen);
    if (h->notes == 0)
        return 0;
    const struct last_hour_note *note = find_note(h, now);
    for (unsigned i = 0; i < LAST_HOUR_VALUES; i++)
        risen[i] = value[i] >= note->value[i] ? value[i] - note->value[i] : value[i];
    return now > note->at ? now - note->at : 1;
}
