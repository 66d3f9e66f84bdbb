/* Where the connections of one port come from: a `+` port dials its endpoint when it is told to, a `-`
 * port listens there. What the endpoint names is looked up at each attempt. An address, interface or
 * name that is not there is a reason to wait, not an error: door_look() tries again.
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
    /* A connection, non-blocking, which the callee closes. */
    void (*connected)(struct door *door, int fd);
    /* As soon as the addresses are known: the one that is dialled or listened on now. */
    void (*placed)(struct door *door, const struct sockaddr *local, const struct sockaddr *peer);
    /* A handle has been opened, or the last of one thing has been closed. */
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
    unsigned dial_route;   /* by this interface, as far as is known */

    struct sockaddr_storage found[LOOKUP_MOST]; /* what the endpoint stands for, */
    unsigned count, next;                       /* and which of it is tried next */
    unsigned index;                             /* of the interface that the endpoint names */

    char reason[DOOR_REASON_SIZE]; /* why it waits; "" if it does not */
    int error;                     /* errno of the last attempt */
    bool here;    /* what it waits for may become right by what happens on this host */
    bool changed; /* `reason` has, since this was reset: to be told */
};

/* Dials, or listens unless it does so already. Calls nothing back before it returns, except `opened`
 * and `placed`. */
void door_open(struct door *door);

/* Interfaces, addresses or routes have changed, or time has passed. A listener that has none, or
 * whose interface is another one now, is opened again. Returns true if a dial should begin
 * again. */
bool door_look(struct door *door);

/* What this host has not that the port needs (an address, an interface, a name), as a reason; NULL: nothing
 * is missing. */
const char *door_missing(const struct door *door);

/* Closes everything; nothing but `closed` is called any more. */
void door_shut(struct door *door);

#endif
