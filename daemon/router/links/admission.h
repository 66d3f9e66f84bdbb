/* Which connections become links: nothing is believed of one before the handshake has shown that it is that of
 * the neighbour that the cabling promises. */
#ifndef TORUSD_ROUTER_LINKS_ADMISSION_H
#define TORUSD_ROUTER_LINKS_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct link;
struct router;

/* A connection on `port` has been made by us (dialled) or by a peer. Returns its link, to which
 * all that happens to the connection is told until io->close(); NULL if it is not wanted: the
 * caller closes it. `address` is copied. */
struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address);

/* Where the next bytes of a stranger are to be put: no more than what it is saying takes. */
uint8_t *admission_room(struct link *link, size_t *size);

/* `length` bytes have been put there. Returns 0, or -1 with *e: it is refused. It may have become the neighbour's
 * (no stranger any more). */
int admission_received(struct link *link, size_t length, struct error *e);

#endif
