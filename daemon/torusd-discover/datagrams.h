/* The UDP socket of discovery, for all interfaces of the host. It needs no privileges. */
#pragma once

#include <uv.h>

#include "daemon/lib/discovery/discovery.h"

struct datagrams {
    uv_poll_t poll;
    int fd;
    /* A datagram from the other end of a cable of this interface (borrowed). */
    void (*received)(void *context, unsigned interface, const struct discovery_address *from,
                     const uint8_t *bytes, size_t size);
    void (*closed)(void *context);
    void *context;
    uint8_t buffer[DISCOVERY_PACKET_MOST];
};

/* Opens the socket; the caller has set the functions and their context. Returns 0, or -1 with *e: another
 * discovery process runs on this host, or the host has no IPv6. */
int datagrams_open(struct datagrams *d, uv_loop_t *loop, struct error *e);
/* Closes the socket; closed() follows. */
void datagrams_close(struct datagrams *d);

/* Sends a datagram over an interface, to a neighbour or (NULL) to all. A datagram that cannot be sent is lost:
 * discovery sends it again later. */
void datagrams_send(struct datagrams *d, unsigned interface, const struct discovery_address *to,
                    const uint8_t *bytes, size_t size);
