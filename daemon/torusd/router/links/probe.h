/* Finds out whether frames of full size pass a connection that has proved itself. The link comes up only
 * after that. */
#pragma once

#include <stdint.h>

#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct link;

/* Sends a frame that fills a packet. Returns 0, or -1 with *e if there is no memory. */
int probe_begin(struct link *link, struct error *e);

/* Handles a message that arrives before the link is up. Returns 1 if the link may come up now, 0 if not yet,
 * or -1 with *e. */
int probe_heard(struct link *link, const struct peer_message *message, struct error *e);

/* When probe_check() must be called next, in nanoseconds of router_now(). */
uint64_t probe_deadline(const struct link *link);

/* Checks whether the probe has lasted too long. Returns 0, or -1 with *why: frames of full size do not
 * pass. */
int probe_check(struct link *link, uint64_t now, struct error *why);

/* Fills *why with the fault that `bytes` bytes are not acknowledged although small frames pass. `mtu` is the
 * MTU of this side; 0: not known. */
void probe_ask_mtu(uint64_t bytes, uint32_t mtu, struct error *why);
