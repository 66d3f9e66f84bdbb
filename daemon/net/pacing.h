/* How much of a slow link's data the kernel holds, and how fast it lets it go. */
#ifndef TORUSD_NET_PACING_H
#define TORUSD_NET_PACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one connection. Zero-initialise. */
struct pacing {
    bool paced;
    double ahead;            /* bytes that the link cannot have carried yet, at its nominal rate */
    uint64_t ahead_since_ms; /* when that was computed */
};

/* Whether a link of this nominal rate (0: unknown) is one that has to be paced, and whose packets
 * end where something ends that a relay waits for. */
bool pacing_is_slow(double link_mbit);

/* Limits how many bytes the kernel takes before they can be sent (TCP_NOTSENT_LOWAT). */
void pacing_limit_unsent(int fd, bool slow);

/* So many bytes are about to be written to this socket, now_ms on any clock that does not jump:
 * turns pacing on or off. Only for slow links. */
void pacing_before_write(struct pacing *p, int fd, double link_mbit, size_t bytes, uint64_t now_ms);

#endif
