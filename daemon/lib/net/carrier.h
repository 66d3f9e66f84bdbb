/* Watches the interfaces of the links by rtnetlink, so that the daemon notices at once when a cable is
 * pulled, without waiting for the link to be silent. Needs no capabilities.
 *
 * The cable of a link is the interface through which its packets leave, according to the kernel's routes. A port
 * that listens and has never had a link uses the interface that has its address, if there is only one.
 * Whenever the system reports a change of an interface, address, route or rule, or that it has lost such
 * reports, the routes and the states of all interfaces are read again, and only differences are told. So a
 * cable that is pulled and plugged in again within one iteration of the loop is not noticed, and TCP
 * retransmits the lost packets. (For most network cards Linux reports the first change at once, and further
 * changes at most once a second.)
 *
 * If the interface of a link fails and the routes lead its packets elsewhere, the link keeps the fault of the
 * failed interface until a new link is watched: the packets no longer use the link's cable. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

#define CARRIER_TEXT_SIZE 160u

struct carrier;

/* The user's functions, called from carrier_report_changes() and from the loop. */
struct carrier_user {
    /* `fault` says why the link of `port` cannot work ("no carrier on eth1"); NULL: it can work again. */
    void (*changed)(void *context, unsigned port, const char *fault);
    /* The system has reported a change: attempts that failed may succeed now. */
    void (*reported)(void *context);
    /* The last handle has been closed, after carrier_close(). */
    void (*closed)(void *context);
    void *context;
};

/* The ends of a link; unknown members are NULL, or "". */
struct carrier_ends {
    const struct sockaddr *local, *peer; /* their TCP ports are ignored */
    const char *interface;               /* the interface that the configuration names */
    bool bound;                          /* sockets of the link use no other interface */
};

/* Starts to watch the links of that many ports; *user is copied. Returns NULL, and logs the reason, if interfaces
 * cannot be watched: links are then lost only by silence. carrier_close() ends it. */
struct carrier *carrier_open(uv_loop_t *loop, const struct carrier_user *user, unsigned ports);
/* Stops watching; the user's closed() follows, and *c is freed. */
void carrier_close(struct carrier *c);

/* Watches the link of `port` between these ends (copied). Addresses without an interface, such as the
 * wildcard address, and loopback interfaces never have a fault. */
void carrier_watch(struct carrier *c, unsigned port, const struct carrier_ends *ends);
/* Whether a link or a dial of this port has been watched, so that its peer is known. */
bool carrier_has_peer(const struct carrier *c, unsigned port);
/* The interface that the link of `port` uses, would use, or used last; "" if it is not known. Borrowed. */
const char *carrier_interface(const struct carrier *c, unsigned port);
/* How often carrier_report_changes() has found a link at another interface, or its interface under another name. */
unsigned carrier_moves(const struct carrier *c);

/* Tells the user what has changed. To be called before the loop sleeps. Returns true if it must be called
 * once more before the loop sleeps. */
bool carrier_report_changes(struct carrier *c);
