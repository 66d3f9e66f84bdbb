/* The reply that lists all hosts. */
#pragma once

#include "daemon/lib/discovery/discovery.h"

/* Packs the reply as a frame. `setups` is the socket of torusd-setup on this host, or NULL if it does not run. Returns
 * *size malloc'ed bytes; or NULL if there is not enough memory, or the frame would be longer than FRAME_MAX_REPLY. */
uint8_t *hosts_reply_pack(struct discovery *d, const char *setups, uint64_t now, size_t *size);
