/* What a connection has until it has proved that it is the neighbour's. */
#ifndef TORUSD_ROUTER_LINKS_STRANGER_H
#define TORUSD_ROUTER_LINKS_STRANGER_H

#include "daemon/router/links/handshake.h"
#include "proto/frame.h"

/* What a connection has until it is: all that it has sent of one message. It is never given more room
 * than that message takes, so what follows the last one is still to be read. */
struct stranger {
    struct handshake handshake;
    struct frame_prefix prefix;
    uint32_t have;
    uint8_t bytes[FRAME_PREFIX_SIZE + FRAME_MAX_STRANGER_HEAD];
};

#endif
