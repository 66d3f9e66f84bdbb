/* The state of a connection that has not proved that it belongs to the neighbour. */
#pragma once

#include "daemon/torusd/router/links/handshake.h"
#include "proto/frame.h"

/* `bytes` holds the received part of one message, and nothing after that message: the bytes that follow the
 * last message of the handshake are still unread. */
struct stranger {
    struct handshake handshake;
    struct frame_prefix prefix;
    uint32_t have;
    uint8_t bytes[FRAME_PREFIX_SIZE + FRAME_MAX_STRANGER_HEAD];
};
