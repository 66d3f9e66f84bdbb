/* What torus-routed asks of the kernel: interfaces, addresses, routes, connections. Functions that return int return 0,
 * or -1 with errno. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/host/netlink.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/routes.h"

/* An address of a host. */
struct ip {
    int family; /* AF_INET or AF_INET6; 0: none */
    union {
        struct in_addr v4;
        struct in6_addr v6;
    };
};

bool ip_equal(const struct ip *a, const struct ip *b);
size_t ip_length(const struct ip *ip);
/* Takes an address from an attribute. */
void ip_take(struct ip *ip, int family, const struct nlattr *attribute);

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
    NETLINK_NEXT_HOPS,   /* over the hops */
    NETLINK_DROP,        /* packets vanish, since there will be a route in a moment */
    NETLINK_UNREACHABLE, /* senders are told that there is no route */
};

#define NETLINK_WEIGHT_MOST 256u

struct netlink_hop {
    unsigned interface;
    unsigned weight; /* 1 to NETLINK_WEIGHT_MOST; of a single hop 1 */
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

/* Adds a route, or replaces our route to this address atomically. */
int netlink_put_route(struct netlink *nl, const struct netlink_route *route);

int netlink_remove_route(struct netlink *nl, const struct ip *to);

/* Calls `on_route` for each of our routes, which may not send requests or keep `congestion`. Hops whose interface is
 * down are left out. */
int netlink_list_routes(struct netlink *nl, int family,
                        void (*on_route)(void *context, const struct netlink_route *route),
                        void *context);

/* Removes all of our routes. */
int netlink_remove_routes(struct netlink *nl);

/* The TCP connections of this host, as the kernel counts them. */

/* Calls `on_connection` for each established connection: its other end, a number that no other connection has, and how
 * many of the bytes that it has sent the other end has acknowledged. Returns 0, or -1 with errno: the kernel cannot tell. */
int connections_list(int family,
                     void (*on_connection)(void *context, const struct ip *to, uint64_t cookie,
                                           uint64_t sent),
                     void *context);

/* Lets packets from cable to cable pass the firewalls of Docker and firewalld, which drop what is forwarded. A chain of
 * our own could not do that: a packet that one chain accepts goes on to the chains of others. So a rule at the
 * beginning of theirs (Docker's DOCKER-USER is made for that) jumps to a chain of ours in their table, which accepts
 * packets that leave by a cable. Needs the program nft. */

#define FIREWALL_CHAIN "TORUS-ROUTED"

/* Adds the rules for these interfaces where one of the firewalls is, and rules are missing, in their chain or in ours. Does nothing without
 * nft. Logs a warning if nft refuses. */
void firewall_pass(char interface[][IFNAMSIZ], unsigned count);

/* Removes all rules and chains that firewall_pass() has added, in this process or a former one. */
void firewall_remove(void);
