/* The source of the connections of one port: a `+` port dials its endpoint when it is told to, a `-` port
 * listens at its endpoint. The names in the endpoint are looked up at each attempt. A missing address,
 * interface or name is a reason to wait, not an error: door_look() tries again.
 *
 *     CLOSED --door_open()--> looking up --> dialling  --> connected(), CLOSED
 *       ^                         |             |     \-> the next address
 *       |                         |          listening (until its interface goes)
 *       +------- waits(reason) ---+-------------+
 */
#ifndef TORUSD_NET_DOORS_DOOR_H
#define TORUSD_NET_DOORS_DOOR_H

#include "daemon/net/addresses/address.h"
#include "daemon/net/addresses/lookup.h"
#include "daemon/net/doors/dial.h"
#include "daemon/net/sockets/listener.h"

#define DOOR_REASON_SIZE 320u

struct door;

struct door_user {
    /* A connection, non-blocking; the callee owns it. */
    void (*connected)(struct door *door, int fd);
    /* The address that the door dials or listens on now, called as soon as it is known. */
    void (*placed)(struct door *door, const struct sockaddr *local, const struct sockaddr *peer);
    /* `opened`: the door has opened a handle. `closed`: all handles of a listener, lookup or dial have been
     * closed. */
    void (*opened)(void *context), (*closed)(void *context);
    void *context;
};

struct door {
    uv_loop_t *loop;
    const struct endpoint *endpoint;
    const struct socket_options *options;
    const struct door_user *user;
    struct reserve *reserve;
    unsigned port;
    bool listens; /* else it dials */
    bool shut;    /* for good */

    bool listening, closing; /* the listener is open; its handles are being closed */
    struct listener listener;
    struct lookup *lookup; /* under way */
    struct dial *dial;     /* under way, */
    unsigned dial_route;   /* index of the interface that `dial` uses; 0 if it is not known */

    struct sockaddr_storage found[LOOKUP_MOST]; /* addresses of the endpoint, */
    unsigned count, next;                       /* and the one to try next */
    unsigned index;                             /* index of the interface that the endpoint names */

    char reason[DOOR_REASON_SIZE]; /* why the door waits; "" if it does not wait */
    int error;                     /* errno of the last attempt */
    bool here;                     /* a change on this host can end the wait */
    bool changed;                  /* `reason` has changed, and the user has not been told */
};

/* Dials; or listens, unless it does so already. Calls no function before it returns, except `opened` and
 * `placed`. */
void door_open(struct door *door);

/* To be called when interfaces, addresses or routes have changed, and from time to time. Opens the listener
 * again if there is none, or if its interface has been replaced by another one. Returns true if the caller
 * should dial again. */
bool door_look(struct door *door);

/* Returns what the port needs and this host does not have (an address, an interface, a name), as a reason;
 * NULL: nothing is missing. */
const char *door_missing(const struct door *door);

/* Closes the door for good; afterwards only `closed` is called. */
void door_shut(struct door *door);

#endif
