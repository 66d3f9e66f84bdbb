/* Receives the bytes of a connection: link states and faults, heartbeats, frames of exchanges. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

/* Returns where to put the next bytes of the connection, and in *size how many fit. Once the link is up, at
 * least LINK_ROOM_LEAST bytes fit. NULL if there is no memory. */
#define LINK_ROOM_LEAST (16u * 1024u)
uint8_t *link_room(struct link *link, size_t *size);

/* To be called when `length` bytes have been put into link_room(). The link may be closed (io->close) before
 * this returns. */
void link_received(struct link *link, size_t length);

/* Whether the caller should stop reading from the connection for now: its frames have filled the queue of
 * another link, whose other end does not take them. io->wake() is called when reading may continue. Bytes
 * that are read anyway are accepted. */
bool link_held(const struct link *link);
