/* The answer to the question for all hosts. */
#ifndef TORUSD_DISCOVERY_PROCESS_HOSTS_REPLY_H
#define TORUSD_DISCOVERY_PROCESS_HOSTS_REPLY_H

#include "daemon/discovery/discovery.h"

/* Packs the answer as a frame; `setups` is the socket of torusd-setup (NULL: none). Returns *size malloc'ed bytes; NULL: there is no memory, or the hosts take more
 * than FRAME_MAX_REPLY. */
uint8_t *hosts_reply_pack(struct discovery *d, const char *setups, uint64_t now, size_t *size);

#endif
