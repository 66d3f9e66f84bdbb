/* Frames to be sent: queued at the port of their link. */
#ifndef TORUSD_ROUTER_RECORD_SEND_H
#define TORUSD_ROUTER_RECORD_SEND_H

#include <stdbool.h>

#include "proto/peer/peer_message.h"

struct outgoing;
struct router;

/* Sends a frame without a body. Nothing happens if the port is down. */
void router_send(struct router *r, unsigned port, const struct peer_message *message);
/* The same on every up port but `except` (-1: on all). */
void router_flood(struct router *r, int except, const struct peer_message *message);
/* More waits for this port than may: whoever asks for something may go without an answer. */
bool router_is_full(const struct router *r, unsigned port);
/* Passes on a data frame on its way through; takes it over. */
void router_relay(struct router *r, unsigned port, struct outgoing *frame);
/* handler.next() has something for this port again. */
void router_wake(struct router *r, unsigned port);

/* The queue of this port has drained: the links that it holds are read again. */
void send_release(struct router *r, unsigned port);

#endif
