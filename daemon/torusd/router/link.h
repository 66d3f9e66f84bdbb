/* The life of one connection: how it becomes a link, its frames, and its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct extent;
struct places;
struct link;
struct outgoing;
struct router;

/* Closes the connection and frees the link; if a caller still uses the link, this happens soon afterwards.
 * With `tell_peer` the reason is sent to the peer first, so that the peer can log it. */
void link_give_up(struct link *link, const struct error *why, bool tell_peer);

/* To be called when the connection has ended (end of file, reset, write error). Frees the link. */
void link_closed(struct link *link, const char *reason);

/* --- admission: a connection is not trusted until the handshake has shown that it belongs to the neighbour that
 * the torus has at this port --- */

/* To be called when this node (`dialled`) or a peer has made a connection on `port`. Returns its link, to
 * which the caller reports all events of the connection until io->close(). Returns NULL if the router does
 * not want the connection: then the caller closes it. `address` is copied. */
struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address);

/* --- frames: link states and faults, heartbeats, frames of exchanges --- */

/* Returns where to put the next bytes of the connection, and in *size how many fit. Once the link is up and
 * encrypted, at least LINK_ROOM_LEAST bytes fit. NULL if there is no memory. */
#define LINK_ROOM_LEAST (16u * 1024u)
uint8_t *link_room(struct link *link, size_t *size);

/* To be called when `length` bytes have been put into link_room(). The link may be closed (io->close) before
 * this returns. */
void link_received(struct link *link, size_t length);

/* Returns how many of the next bytes of the connection belong to a body that only passes this node: the caller may
 * put them, or the first of them, into a pipe, and give them to link_passed(). Bytes of other frames that this node
 * sends by the same port may leave in between. 0: all bytes go to link_room(). */
uint32_t link_passing(struct link *link);

/* As link_received(), for bytes of a slab whose bytes are in a pipe. */
void link_passed(struct link *link, const struct extent *bytes);

/* Whether many of the next bytes of the connection belong into the memory of programs. If so, sets *places to where; the
 * last place is room as link_room() returns it, for the next head. The caller reads bytes there at once, by a call that does
 * not block, and calls link_placed() with how many; or it leaves it. The places are not valid any longer then: this node may
 * give the memory back to its program. */
bool link_places(struct link *link, struct places *places);
void link_placed(struct link *link, const struct places *places, size_t length);

/* Whether the connection has proved itself, and its probe has passed. */
bool link_carries(const struct link *link);

/* Returns how many more bytes of the connection, decrypted, belong to the frame that is arriving; 0 if none is, or
 * its length is not known yet. */
uint32_t link_left(const struct link *link);

/* Whether the caller should stop reading from the connection for now: its frames have filled the queue of
 * another link, whose other end does not take them. io->wake() is called when reading may continue. Bytes
 * that are read anyway are accepted. */
bool link_held(const struct link *link);

/* Returns the next frame to write, in the order of their urgency; the caller frees it after the write. NULL: there is none now. */
struct outgoing *link_next(struct link *link);

/* --- the carrier --- */

/* To be called when the cable of `port` has failed; `fault` says why ("no carrier on eth1"; copied): the
 * router gives up the link. NULL: the cable works again, and the router dials at once. The port has its new
 * state before the handler is called. */
void router_carrier(struct router *r, unsigned port, const char *fault);
