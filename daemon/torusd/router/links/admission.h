/* Decides which connections become links. A connection is not trusted until the handshake has shown that it
 * belongs to the neighbour that the torus has at this port. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct link;
struct router;

/* To be called when this node (`dialled`) or a peer has made a connection on `port`. Returns its link, to
 * which the caller reports all events of the connection until io->close(). Returns NULL if the router does
 * not want the connection: then the caller closes it. `address` is copied. */
struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address);

/* Returns where to put the next bytes of a connection that has not proved itself, and in *size how many fit:
 * at most the rest of the message that is arriving. */
uint8_t *admission_room(struct link *link, size_t *size);

/* `length` bytes have been put into admission_room(). Returns 0, or -1 with *e: the connection is refused.
 * After a success the connection may have proved itself. */
int admission_received(struct link *link, size_t length, struct error *e);
