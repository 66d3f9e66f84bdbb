#include "client/cli/serving/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rate as 16 bits: 0 is not known; otherwise 1 + SCALE * log2(1 + rate), rounded. */
#define SCALE 1000.0

static uint16_t encode(double rate)
{
    if (!(rate >= 0)) /* also if it is not a number */
        return 0;
    const double code = 1.5 + SCALE * log2(1 + rate);
    return code < UINT16_MAX ? (uint16_t)code : UINT16_MAX;
}

static double decode(uint16_t code)
{
    return exp2((code - 1) / SCALE) - 1;
}

int history_begin(struct history *h, size_t channels)
{
    *h = (struct history){.channels = channels};
    h->code = calloc(channels, HISTORY_SECONDS * sizeof *h->code);
    return h->code != NULL ? 0 : -1;
}

void history_free(struct history *h)
{
    free(h->code);
    *h = (struct history){0};
}

static uint16_t *at(const struct history *h, size_t channel, uint64_t second)
{
    return &h->code[channel * HISTORY_SECONDS + second % HISTORY_SECONDS];
}

void history_move(struct history *h, uint64_t second)
{
    if (second <= h->newest)
        return;
    uint64_t from = h->newest + 1;
    if (second - h->newest > HISTORY_SECONDS)
        from = second - HISTORY_SECONDS + 1;
    for (size_t channel = 0; channel < h->channels; channel++)
        for (uint64_t s = from; s <= second; s++)
            *at(h, channel, s) = 0;
    h->newest = second;
}

void history_set(struct history *h, size_t channel, uint64_t seconds, double rate)
{
    const uint16_t code = encode(rate);

    if (seconds > HISTORY_SECONDS)
        seconds = HISTORY_SECONDS;
    for (uint64_t i = 0; i < seconds && i < h->newest; i++)
        *at(h, channel, h->newest - i) = code;
}

/* The sum of channels in a second; below 0: no channel is known. */
static double sum_of(const struct history *h, const size_t *channels, size_t count, uint64_t second)
{
    double sum = -1;

    for (size_t i = 0; i < count; i++) {
        const uint16_t code = *at(h, channels[i], second);
        if (code != 0)
            sum = (sum < 0 ? 0 : sum) + decode(code);
    }
    return sum;
}

void history_reduce(const struct history *h, const size_t *channels, size_t count,
                    struct history_points *points)
{
    for (size_t p = 0; p < HISTORY_POINTS; p++) {
        const uint64_t ago = HISTORY_SECONDS - 1 - p * HISTORY_STEP; /* of the first second */
        double sum = 0, peak = -1;
        unsigned known = 0;

        for (uint64_t i = 0; i < HISTORY_STEP; i++) {
            if (ago - i >= h->newest)
                continue;
            const double value = sum_of(h, channels, count, h->newest - (ago - i));
            if (value < 0)
                continue;
            known++;
            sum += value;
            peak = value > peak ? value : peak;
        }
        points->mean[p] = known > 0 ? sum / known : -1;
        points->peak[p] = peak;
    }
}
