/* A worm, a message in wormhole switching, on channels of different rates.
 *
 * Its data flow in infinitely small parts. A channel of the path carries data from the time when the head has crossed
 * it, at its rate, as long as data have come to it and the buffer after it has room: it has carried no more than the
 * channel before it, and at most `buffer` more than the channel after it. So a slow channel keeps the channels before it
 * waiting, when the buffers between are full, and those after it, which wait for data. */
#pragma once

#include <stdint.h>

struct worm {
    uint32_t hops;           /* channels that the head has taken */
    const uint64_t *crossed; /* by hop: when the head has crossed it, in ascending order */
    const double *rate;      /* by hop: data in a unit of time */
    double size, buffer;     /* in data */
    int arrives;     /* the last of these channels ends at the destination, which takes in all */
    double *carried; /* room: by hop, how much it has carried */
    double *speed;   /* room, by hop */
};

/* Follows the worm as if its head never took another channel. Sets ends[i] to the time, from crossed[0] on, when channel
 * i has carried all, or to INFINITY if it never does. What it says of a channel that ends stays true when the head moves
 * on: the channel ended without the room that this makes. */
void worm_follow(const struct worm *w, double *ends);
