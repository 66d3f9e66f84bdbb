/* Watches the interfaces of the links by rtnetlink: a cable that is pulled is known at once, without
 * waiting for its silence. Needs no capabilities.
 *
 * The cable of a link is the interface by which its packets leave, as the kernel's routes say; of a port
 * that listens and has had no link, the only interface that has its address. This is asked again, and the
 * state of all interfaces read again, whenever the system reports that an interface, address, route or
 * rule has changed, and whenever it says that reports have been lost; only differences are told. So a
 * cable that is pulled and plugged in again within one turn of the loop is not noticed; TCP sends again
 * what was lost. (For most network cards Linux reports the first change at once, and no more than one a
 * second after it.)
 *
 * When the interface of a link fails and routes lead its packets elsewhere, the fault remains that of the
 * interface until a new link is watched: what now carries the packets is another cable. */
#ifndef TORUSD_NET_CARRIER_CARRIER_H
#define TORUSD_NET_CARRIER_CARRIER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

#define CARRIER_TEXT_SIZE 160u

struct carrier;

/* What is told, from carrier_look() and the loop. */
struct carrier_user {
    /* `fault` says why the link of `port` cannot work ("no carrier on eth1"), or is NULL: it can
     * again. */
    void (*changed)(void *context, unsigned port, const char *fault);
    /* Something has been reported: what could not be done may be possible now. */
    void (*reported)(void *context);
    /* The last handle has been closed after carrier_close(). */
    void (*closed)(void *context);
    void *context;
};

/* The ends of a link; what is not known is NULL, or "". */
struct carrier_ends {
    const struct sockaddr *local, *peer; /* their TCP ports are ignored */
    const char *interface;               /* that the configuration names */
    bool bound;                          /* its sockets use no other interface */
};

/* Returns NULL, and logs it, if interfaces cannot be watched: links are then given up when they are
 * silent. */
struct carrier *carrier_open(uv_loop_t *loop, const struct carrier_user *user);
void carrier_close(struct carrier *c);

/* The link of `port` has these ends from now on (copied). What has no interface, such as the wildcard
 * address, and loopback interfaces are never at fault. */
void carrier_watch(struct carrier *c, unsigned port, const struct carrier_ends *ends);
/* Whether the link of this port, or a dial, has been watched: its peer is known. */
bool carrier_has_peer(const struct carrier *c, unsigned port);
/* The interface that the link of `port` uses, or would, or used last; "" if it is not known. */
const char *carrier_interface(const struct carrier *c, unsigned port);

/* Tells what has changed. Call it before the loop sleeps. Returns true if it is to be called again
 * before that. */
bool carrier_look(struct carrier *c);

#endif
