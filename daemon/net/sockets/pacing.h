/* How much of a slow link's data the kernel holds, and how fast it lets it go. */
#ifndef TORUSD_NET_SOCKETS_PACING_H
#define TORUSD_NET_SOCKETS_PACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one connection. Zero-initialise. */
struct pacing {
    bool paced;
    double bytes_per_second; /* of payload, that the link carries */
    double ahead;            /* bytes that it cannot have carried yet */
    uint64_t ahead_since_ms; /* when that was computed */
};

/* Whether a link of this nominal rate (0: unknown) is one that has to be paced, and whose packets
 * end where something ends that a relay waits for. */
bool pacing_is_slow(double link_mbit);

/* Limits how many bytes the kernel takes before they can be sent (TCP_NOTSENT_LOWAT). */
void pacing_limit_unsent(int fd, bool slow);

/* A connected socket, whose link has this nominal rate, above 0: finds out how much of that is payload. */
void pacing_start(struct pacing *p, int fd, double link_mbit);

/* So many bytes are about to be written to this socket, now_ms on any clock that does not jump:
 * turns pacing on or off. Only for slow links, after pacing_start(). */
void pacing_before_write(struct pacing *p, int fd, size_t bytes, uint64_t now_ms);

/* So much is written to a slow link in one go, and not what would keep the order of departure for longer. */
#define PACING_WRITE_MOST (32u * 1024u)

#endif
