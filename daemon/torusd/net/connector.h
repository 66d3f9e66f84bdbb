/* Makes the TCP connections of one port: a `+` port dials its endpoint on request, a `-` port listens at
 * its endpoint. Names in the endpoint are looked up at each attempt. If an address, interface or name is
 * missing, the connector waits, and connector_recheck() tries again.
 *
 *     CLOSED --connector_open()--> looking up --> dialling  --> connected(), CLOSED
 *       ^                              |             |     \-> the next address
 *       |                              |          listening (until its interface goes)
 *       +---------- waits(reason) -----+-------------+
 */
#pragma once

#include "daemon/lib/net/address.h"
#include "daemon/lib/net/sockets.h"

#define CONNECTOR_REASON_SIZE 320u
#define LOOKUP_MOST 8u /* addresses of a name */

struct connector;
struct dial;
struct lookup;

struct connector_user {
    /* A connection, non-blocking. The callee owns `fd`. */
    void (*connected)(struct connector *connector, int fd);
    /* The connector starts to dial `peer`, or to listen on `local`; the other one is NULL. */
    void (*address_known)(struct connector *connector, const struct sockaddr *local,
                          const struct sockaddr *peer);
    /* `opened`: the connector has opened a handle. `closed`: all handles of a listener, lookup or dial have been
     * closed. */
    void (*opened)(void *context), (*closed)(void *context);
    void *context;
};

struct connector {
    uv_loop_t *loop;
    const struct endpoint *endpoint;
    const struct socket_options *options;
    const struct connector_user *user;
    struct reserve *reserve;
    unsigned port;
    bool listens; /* else it dials */
    bool closed_for_good;

    bool listening, closing; /* the listener is open; its handles are being closed */
    struct listener listener;
    struct lookup *lookup; /* under way */
    struct dial *dial;     /* under way, */
    unsigned dial_route;   /* index of the interface that `dial` uses; 0 if it is not known */

    struct sockaddr_storage found[LOOKUP_MOST]; /* addresses of the endpoint, */
    unsigned count, next;                       /* and the one to try next */
    unsigned index;                             /* index of the interface that the endpoint names */

    char reason[CONNECTOR_REASON_SIZE]; /* why the connector waits; "" if it does not wait */
    int error;                          /* errno of the last attempt */
    bool is_local; /* the error is one of this host, so a change here can end the wait */
    bool changed;  /* `reason` has changed, and the user has not been told */
};

/* Starts to dial; or to listen, unless the connector listens already. During the call, only `opened` and
 * `address_known` are called. */
void connector_open(struct connector *connector);

/* To be called when interfaces, addresses or routes have changed, and from time to time. Opens the listener
 * again if it is not open, or if its interface has been replaced. Returns true if the caller should dial
 * again. */
bool connector_recheck(struct connector *connector);

/* Returns a text about the address, interface or name that the port needs and this host lacks; NULL: nothing
 * is missing. Borrowed. */
const char *connector_missing(const struct connector *connector);

/* Closes the connector for good; afterwards only `closed` is called. */
void connector_close(struct connector *connector);
