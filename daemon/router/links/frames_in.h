/* What comes in on a connection: link states and faults, heartbeats, frames of exchanges. */
#ifndef TORUSD_ROUTER_LINKS_FRAMES_IN_H
#define TORUSD_ROUTER_LINKS_FRAMES_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

/* Where the next bytes of the connection are to be put: once it is up, there is room for LINK_ROOM_LEAST
 * bytes at least. NULL if there is no memory. */
#define LINK_ROOM_LEAST (16u * 1024u)
uint8_t *link_room(struct link *link, size_t *size);

/* `length` bytes have been put there. The link may be closed (io->close) before this returns. */
void link_received(struct link *link, size_t length);

/* Whether nothing more is to be read from the connection for now, because what was read last has
 * filled the queue of a link whose other end does not take it. io->wake() is called when that has
 * changed. What is read nevertheless is taken. */
bool link_held(const struct link *link);

#endif
