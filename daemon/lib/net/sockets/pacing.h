/* Limits how much data of a slow link the kernel holds, and how fast the kernel sends it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The pacing of one connection. Zero-initialise. */
struct pacing {
    bool paced;
    double bytes_per_second; /* payload that the link carries */
    double ahead;            /* bytes written that the link cannot have carried yet */
    uint64_t ahead_since_ms; /* when `ahead` was computed */
};

/* Whether a link of this nominal rate in Mbit/s (0: unknown) must be paced, and frames that a relay waits for
 * must end a packet. */
bool pacing_is_slow(double link_mbit);

/* Limits how many bytes the kernel takes before it can send them (TCP_NOTSENT_LOWAT). */
void pacing_limit_unsent(int fd, bool slow);

/* Starts the pacing of a connected socket: computes which part of the link's nominal rate (above 0 Mbit/s) is
 * payload. */
void pacing_start(struct pacing *p, int fd, double link_mbit);

/* Turns pacing on or off before `bytes` bytes are written to this socket. `now_ms` is in milliseconds, on
 * any clock that does not jump. Only for slow links, after pacing_start(). */
void pacing_before_write(struct pacing *p, int fd, size_t bytes, uint64_t now_ms);

/* Most bytes in one write to a slow link: frames that are written cannot be overtaken by more urgent ones. */
#define PACING_WRITE_MOST (32u * 1024u)
