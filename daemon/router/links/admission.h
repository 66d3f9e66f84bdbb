/* Decides which connections become links. A connection is not trusted before the handshake has shown that
 * it belongs to the neighbour that the cabling promises. */
#ifndef TORUSD_ROUTER_LINKS_ADMISSION_H
#define TORUSD_ROUTER_LINKS_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct link;
struct router;

/* This node (`dialled`) or a peer has made a connection on `port`. Returns its link, and the caller tells
 * it all events of the connection until io->close(). Returns NULL if the router does not want the
 * connection: the caller closes it. `address` is copied. */
struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address);

/* Returns where to put the next bytes of a stranger, and in *size how many fit: never more than the rest of
 * the message that is arriving. */
uint8_t *admission_room(struct link *link, size_t *size);

/* `length` bytes have been put into admission_room(). Returns 0, or -1 with *e: the connection is refused.
 * After a success it may have proved itself, and be no stranger any more. */
int admission_received(struct link *link, size_t length, struct error *e);

#endif
