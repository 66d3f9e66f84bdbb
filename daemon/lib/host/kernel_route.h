/* Which route the kernel takes to an address, as it says when it is asked: not the one that somebody has set. Any user may
 * ask. A policy rule of a VPN, another table, or a route with a lower metric may come before a route of torus-routed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/lib/host/netlink.h"

#define KERNEL_ROUTE_TEXT 400u

struct kernel_rule; /* a policy rule */

/* The policy rules, and how to ask. */
struct kernel_routes {
    struct netlink netlink;
    struct kernel_rule *rule[2]; /* of IPv4, IPv6; in the order in which the kernel looks at them */
    unsigned rules[2];
};

/* Reads the policy rules. Returns 0, or -1 if the kernel does not answer. kernel_routes_close() is to be called in any
 * case. */
int kernel_routes_open(struct kernel_routes *k);
void kernel_routes_close(struct kernel_routes *k);

/* What takes the packets to an address. */
struct kernel_answer {
    bool usual;                   /* a route of the main table, or an address of this host itself */
    bool ours;                    /* a route of this project (proto/routes.h) */
    char text[KERNEL_ROUTE_TEXT]; /* otherwise: what takes them, */
    char mend[KERNEL_ROUTE_TEXT]; /* and the command that ends it; "": none is known */
};

/* Asks for the route of packets of this host to `to`, an address of `family`; `from`, if not NULL, is the address of this
 * host from which they come. `network`, as "10.128.0.0/24", is what the command leads back to the main table. Returns 0,
 * or -1 if the kernel does not answer. */
int kernel_route_ask(struct kernel_routes *k, int family, const void *to, const void *from,
                     const char *network, struct kernel_answer *answer);

/* The least network that contains addresses. Begin with .family = 0. */
struct kernel_network {
    int family;
    unsigned length; /* in bits */
    uint8_t address[16];
};
void kernel_network_add(struct kernel_network *n, int family, const void *address);
/* Writes it as "10.128.0.0/24". */
void kernel_network_write(const struct kernel_network *n, char *text, unsigned size);

/* Finds the interface that sends packets to `peer`. Returns its index, or 0 with errno: no route leads there. `local` (may be
 * NULL) is the source address of these packets; `bound` is the index of the interface to which their socket is bound (0:
 * none). */
unsigned route_interface(const struct sockaddr *peer, const struct sockaddr *local, unsigned bound);
