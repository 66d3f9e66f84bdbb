/* Queues frames for sending at the port of their link. */
#pragma once

#include <stdbool.h>

#include "proto/peer/peer_message.h"

struct outgoing;
struct router;

/* Sends a frame without a body. Does nothing if the port is down. */
void router_send(struct router *r, unsigned port, const struct peer_message *message);
/* Sends a frame without a body on every port that is up, except on `except` (-1: on all of them). */
void router_flood(struct router *r, int except, const struct peer_message *message);
/* Whether more control frames wait for this port than ROUTER_QUEUE_MOST allows: requests may then be left
 * without an answer. */
bool router_is_full(const struct router *r, unsigned port);
/* Relays a data frame through `port`; takes the frame over. */
void router_relay(struct router *r, unsigned port, struct outgoing *frame);
/* Asks handler.next() again for frames of this port. */
void router_wake(struct router *r, unsigned port);

/* Continues to read from the links that the full queue of this port had stopped, if the queue has drained. */
void send_release(struct router *r, unsigned port);
