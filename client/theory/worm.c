#include "client/theory/worm.h"

#include <math.h>
#include <stdbool.h>

#define NEAR 1e-9 /* of the size: what is nearer is equal */

/* Times count from the one when the head has crossed the first channel, so that doubles have room for them. */
static double crossed(const struct worm *w, uint32_t hop)
{
    return (double)(w->crossed[hop] - w->crossed[0]);
}

static bool is_active(const struct worm *w, uint32_t hop, double now)
{
    return crossed(w, hop) <= now && w->carried[hop] < w->size;
}

/* What the channel may have carried: by what has come to it, and by the room after it. */
static double supply(const struct worm *w, uint32_t hop)
{
    return hop > 0 ? w->carried[hop - 1] : w->size;
}

static double room(const struct worm *w, uint32_t hop)
{
    if (hop + 1 < w->hops)
        return w->carried[hop + 1] + w->buffer;
    return w->arrives ? INFINITY : w->buffer;
}

/* Sets the speeds: a channel that has carried all that has come, or that has no room, is no faster than its neighbour. */
static void find_speeds(const struct worm *w, double now)
{
    const double near = w->size * NEAR;

    for (uint32_t i = 0; i < w->hops; i++)
        w->speed[i] = is_active(w, i, now) ? w->rate[i] : 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < w->hops; i++) {
            double most = w->speed[i];
            if (i > 0 && w->carried[i] >= supply(w, i) - near && w->carried[i - 1] < w->size)
                most = fmin(most, w->speed[i - 1]);
            if (w->carried[i] >= room(w, i) - near)
                most = fmin(most, i + 1 < w->hops ? w->speed[i + 1] : 0);
            changed = changed || most < w->speed[i];
            w->speed[i] = most;
        }
    }
}

/* When the speeds change: a channel has carried all, catches up with a neighbour, or begins. */
static double find_change(const struct worm *w, double now)
{
    const double near = w->size * NEAR;
    double next = INFINITY;

    for (uint32_t i = 0; i < w->hops; i++) {
        const double before = i > 0 ? w->speed[i - 1] : 0;
        const double after = i + 1 < w->hops ? w->speed[i + 1] : 0;
        if (crossed(w, i) > now)
            next = fmin(next, crossed(w, i));
        if (w->speed[i] <= 0)
            continue;
        next = fmin(next, now + (w->size - w->carried[i]) / w->speed[i]);
        if (w->speed[i] > before && supply(w, i) - w->carried[i] > near)
            next = fmin(next, now + (supply(w, i) - w->carried[i]) / (w->speed[i] - before));
        if (w->speed[i] > after && room(w, i) - w->carried[i] > near)
            next = fmin(next, now + (room(w, i) - w->carried[i]) / (w->speed[i] - after));
    }
    return fmax(next, nextafter(now, INFINITY));
}

void worm_follow(const struct worm *w, double *ends)
{
    double now = 0, next;

    for (uint32_t i = 0; i < w->hops; i++) {
        w->carried[i] = 0;
        ends[i] = w->size > 0 ? INFINITY : crossed(w, i);
    }
    for (find_speeds(w, now); (next = find_change(w, now)) < INFINITY; find_speeds(w, now)) {
        for (uint32_t i = 0; i < w->hops; i++) {
            w->carried[i] += w->speed[i] * (next - now);
            if (w->carried[i] < w->size * (1 - NEAR) || ends[i] < INFINITY)
                continue;
            w->carried[i] = w->size;
            ends[i] = next;
        }
        now = next;
    }
}
