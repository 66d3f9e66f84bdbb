/* Requests to the kernel about interfaces, addresses and routes. Each waits for the kernel's answer, which does not
 * depend on anybody else. Functions that return int return 0, or -1 with errno. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/routes.h"

struct mnl_socket;

struct netlink {
    struct mnl_socket *socket;
    unsigned port, sequence;
};

/* Opens the socket; netlink_close() closes it, also after a failure. */
int netlink_open(struct netlink *nl);
/* The same for another part of the kernel (NETLINK_SOCK_DIAG). */
int netlink_open_for(struct netlink *nl, int protocol);
void netlink_close(struct netlink *nl);

/* An address of a host. */
struct ip {
    int family; /* AF_INET or AF_INET6; 0: none */
    union {
        struct in_addr v4;
        struct in6_addr v6;
    };
};

bool ip_equal(const struct ip *a, const struct ip *b);

/* --- interfaces --- */

enum netlink_maker {
    NETLINK_MISSING,   /* it does not exist */
    NETLINK_LIKE_OURS, /* netlink_make_interface() makes such interfaces */
    NETLINK_FOREIGN,
};
enum netlink_maker netlink_interface_maker(struct netlink *nl, const char *name);

/* Makes the interface `name`, which has no cable, unless it exists, and sets it up. */
int netlink_make_interface(struct netlink *nl, const char *name);

/* Gives the interface these addresses, and removes all others but those of the link. */
int netlink_set_addresses(struct netlink *nl, const char *name, const struct ip *address,
                          unsigned count);

/* Removes the interface; done if it does not exist. */
int netlink_remove_interface(struct netlink *nl, const char *name);

/* Finds an interface. Returns false if it does not exist. */
struct netlink_interface {
    unsigned index, mtu;
    bool up, carrier;
};
bool netlink_interface(struct netlink *nl, const char *name, struct netlink_interface *out);

/* Stores how many bytes the interface with this number has sent since it exists; 0 if it does not exist. */
int netlink_sent(struct netlink *nl, unsigned index, uint64_t *sent);

/* --- routes --- */

enum netlink_kind {
    NETLINK_WAYS,        /* over the hops */
    NETLINK_DROP,        /* packets vanish, since there will be a way in a moment */
    NETLINK_UNREACHABLE, /* senders are told that there is no way */
};

struct netlink_hop {
    unsigned interface;
    struct ip gateway;
};

struct netlink_route {
    struct ip to, source; /* source: family 0: the kernel's choice */
    enum netlink_kind kind;
    unsigned hops;
    struct netlink_hop hop[TORUS_MAX_PORTS];
    unsigned mtu;           /* 0: that of the interface */
    const char *congestion; /* NULL: that of the machine */
};

/* Adds a route, or puts it in the place of ours to this address, without a moment between. */
int netlink_put_route(struct netlink *nl, const struct netlink_route *route);

int netlink_remove_route(struct netlink *nl, const struct ip *to);

/* Calls `on_route` for each of our routes, which may not send requests or keep `congestion`. Hops whose interface is
 * down are left out. */
int netlink_list_routes(struct netlink *nl, int family,
                        void (*on_route)(void *context, const struct netlink_route *route),
                        void *context);

/* Removes all of our routes. */
int netlink_remove_routes(struct netlink *nl);
