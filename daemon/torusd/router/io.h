/* What the core needs from outside: time, randomness, connections. Under libuv daemon/torusd/net provides it, in the
 * simulator tests/sim. No function may call back into the router. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link_keys;
struct outgoing;

struct connection_stat {
    uint32_t rtt_us;     /* 0 = unknown */
    uint32_t min_rtt_us; /* the shortest of the last minutes; 0 = unknown */
    uint64_t
        rate_bps; /* bits per second that were delivered while data always waited for the link; 0 = unknown */
    uint32_t measured; /* how often that has been measured */
    uint64_t acked;    /* bytes that the peer's system has acknowledged; 0 = unknown */
    bool in_flight;   /* the peer has room, and has not acknowledged everything; false if unknown */
    uint64_t unacked; /* bytes that have been sent and not acknowledged; 0 if unknown */
    bool tells_room;  /* the system tells: */
    uint64_t
        no_room_us;   /* for how long, so far, bytes waited because the peer had no room for them */
    uint32_t segment; /* most bytes in one packet; 0 = unknown */
    uint32_t mtu;     /* of the route; 0 = unknown */
    uint32_t retransmits; /* packets that were sent again */
};

struct router_io {
    void *context;

    /* Monotonic nanoseconds. */
    uint64_t (*now)(void *context);
    void (*random)(void *context, void *buffer, size_t size);

    /* Start to connect a `+` port to its neighbour. router_connected() or router_dial_failed() follows, never
     * from inside the call. A dial of this port that is under way is abandoned without a report. */
    void (*dial)(void *context, unsigned port);

    /* link_next() has something to send on this connection. Cheap, may be called often. */
    void (*wake)(void *context, void *connection);

    /* Close the connection, whose link no longer exists. Takes over `last` (may be NULL): this frame is still
     * sent if the peer takes it in time, and is freed with outgoing_free(). */
    void (*close)(void *context, void *connection, struct outgoing *last);

    void (*stat)(void *context, void *connection, struct connection_stat *stat);

    /* Encrypt the connection from now on, in both directions, except for frames that are `plain`. `keys`
     * (handshake.h) are borrowed. Returns 0, or -1 if there is no memory. May be NULL if links are not to be
     * encrypted. */
    int (*encrypt)(void *context, void *connection, const struct link_keys *keys);

    /* Called when the connection has proved that it belongs to the neighbour. May be NULL. */
    void (*proved)(void *context, void *connection);
};
