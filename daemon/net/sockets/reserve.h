/* Descriptors kept back, so that what must not fail still finds one when all others are in use. */
#ifndef TORUSD_NET_SOCKETS_RESERVE_H
#define TORUSD_NET_SOCKETS_RESERVE_H

#include <stdbool.h>

#define RESERVE_MOST 32u

/* Zero-initialise. */
struct reserve {
    unsigned wanted, held;
    int fd[RESERVE_MOST];
};

/* Holds `wanted` (at most RESERVE_MOST) descriptors, or as many as there are. Again after
 * something has been closed. */
void reserve_fill(struct reserve *r, unsigned wanted);

/* `error` is an errno of a call that opens a descriptor. If there was none left and one was kept
 * back, it is released: true, try again. */
bool reserve_helps(struct reserve *r, int error);

/* Whether an errno says that there are no descriptors, or no memory for one, just now. */
bool reserve_is_shortage(int error);

void reserve_close(struct reserve *r);

#endif
