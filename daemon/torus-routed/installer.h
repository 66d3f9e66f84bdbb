/* Puts the planner's routes into the kernel. Remembers what is there, so that only differences are sent. */
#pragma once

#include "daemon/lib/cluster/route_planner.h"
#include "daemon/lib/host/kernel_route.h"
#include "daemon/torus-routed/host_addresses.h"
#include "proto/routes.h"

/* The end of a cable at this host. */
struct cable {
    char name[IFNAMSIZ]; /* "": not known, or no cable */
    struct netlink_interface interface;
    bool
        proved; /* a link was up over it since its carrier came, so its other end is the neighbour */
};

/* A route as it is in the kernel. */
struct installed {
    bool known; /* false: perhaps there is none, or another one */
    enum netlink_kind kind;
    uint32_t ports;
    uint16_t weight[TORUS_MAX_PORTS]; /* by port, if there are several */
    unsigned mtu;
};

struct installer {
    struct netlink *netlink; /* borrowed, as are the next three */
    const struct host_addresses *hosts;
    const struct route_planner *planner;
    const char *congestion; /* NULL: that of the machine */
    struct cable cable[TORUS_MAX_PORTS];
    const bool *
        spread; /* by node: connections take all paths, not only the chosen one; NULL: to all nodes. Borrowed */
    unsigned mtu;                          /* of the narrowest cable; 0: all are the same */
    struct installed *installed[FAMILIES]; /* by family and node */
    unsigned families;
    bool unweighted[FAMILIES]; /* the kernel does not keep weights: Linux before 4.16, IPv6 */
    unsigned failures;    /* routes that the kernel has refused since the last installer_look() */
    struct error failure; /* the first of these */
};

/* The caller has set netlink, hosts, planner, spread and congestion; the rest is zero. Returns 0, or -1 if there is no
 * memory. The caller calls installer_free(). */
int installer_init(struct installer *i);
void installer_free(struct installer *i);

/* Takes the names of the interfaces by port, and looks at the interfaces. A renamed interface is found by its number
 * until its new name is reported. Returns whether anything has changed, apart from carriers. */
bool installer_look_at_cables(struct installer *i, char names[][IFNAMSIZ]);

/* Stores by port what its interface has sent since it exists; 0 without an interface. Returns 0, or -1 with errno if
 * the kernel does not say that. */
int installer_sent(const struct installer *i, uint64_t sent[TORUS_MAX_PORTS]);

/* Notes at which ports links are up (bits): their cables lead to the neighbours. */
void installer_prove_cables(struct installer *i, uint32_t up);

/* Returns the ports of the cables to a neighbour to which no link is up (perhaps its torusd does not run): those that
 * had a link and have kept their carrier since. Packets to the neighbour's own addresses take them. 0: none. */
uint32_t installer_direct(const struct installer *i, uint32_t to);

/* Returns those of the planner's ports that packets to a node take. */
uint32_t installer_used(const struct installer *i, uint32_t to);

/* Returns the weight of one of these ports, if there are several. */
unsigned installer_weight(const struct installer *i, uint32_t to, unsigned port);

/* Returns whether the kernel has the routes to a node as they were put there last. */
bool installer_knows(const struct installer *i, uint32_t to);

/* Returns what packets to a node take. `diverted`: the kernel was asked, and takes another route than the one that was
 * put there. */
enum route_state installer_state(const struct installer *i, uint32_t to, bool diverted);

/* Finds out which routes of ours the kernel has, and removes those to addresses that no host has: all IPv6 routes, if
 * IPv6 is not used. `adopt`, which may be NULL, gets the ports of each IPv4 route. */
void installer_look(struct installer *i, void (*adopt)(void *context, uint32_t to, uint32_t ports),
                    void *context);

/* Makes the kernel's routes to a node as the planner has them. */
void installer_put(struct installer *i, uint32_t to);

/* Asks the kernel which routes it takes: others may come before those that the installer has put there. */

struct kernel_query {
    const struct installer *installer;
    struct kernel_routes kernel;
    bool works;
    char network[FAMILIES][INET6_ADDRSTRLEN + 4]; /* of all hosts */
    unsigned diverted;          /* hosts to which the kernel takes another route */
    struct kernel_answer first; /* the route to the first of them */
};

/* Prepares to ask. The caller calls kernel_query_end(). */
void kernel_query_begin(struct kernel_query *a, const struct installer *installer);
void kernel_query_end(struct kernel_query *a);

/* Returns whether the kernel takes another route to a host than the one that was set, and which. Does not ask about a
 * route that drops packets: the answer would be an error, whichever route drops them. */
bool kernel_query_diverted(struct kernel_query *a, uint32_t to, struct kernel_answer *answer);
