/* Whether frames of full size pass a connection that has been proved: only then it is up. */
#ifndef TORUSD_ROUTER_LINKS_PROBE_H
#define TORUSD_ROUTER_LINKS_PROBE_H

#include <stdint.h>

#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct link;

/* Sends a frame that fills a packet. Returns 0, or -1 with *e if there is no memory. */
int probe_begin(struct link *link, struct error *e);

/* Something has come before the link is up. Returns 1 if it is up now, 0, or -1 with *e. */
int probe_heard(struct link *link, const struct peer_message *message, struct error *e);

/* When probe_check() must be called next. */
uint64_t probe_deadline(const struct link *link);

/* Returns 0, or -1 with *why: frames of full size do not pass. */
int probe_check(struct link *link, uint64_t now, struct error *why);

/* The reason if so many bytes were sent, and small frames pass. `mtu` of this side: 0 if it is not known. */
void probe_ask_mtu(uint64_t bytes, uint32_t mtu, struct error *why);

#endif
