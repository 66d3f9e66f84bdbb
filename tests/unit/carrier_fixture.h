/* A system whose interfaces, addresses and routes a test sets, and the events about its carriers. */
#pragma once

#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/lib/net/carrier.h"

#define MOST 8u
#define PORTS 4u

enum {
    LOWER_UP = 0x10000,
    WORKS = IFF_UP | LOWER_UP,
    CUT = IFF_UP,
    LOOPBACK = IFF_UP | IFF_LOOPBACK
};

extern struct ifaddrs entry[MOST];
extern struct sockaddr_storage addresses[MOST];
extern unsigned entries, asked; /* interfaces with an address; how often they were asked for */
extern bool no_netlink, fails;  /* there is no netlink; no interface can be read */
extern int reports;             /* the system's end of the socket; begin_real(): the socket */
extern unsigned overruns;       /* reports that are lost next */
extern unsigned number[MOST];   /* of each entry's interface */
extern unsigned route;          /* the interface of the route to any peer; 0: none */
extern unsigned route_bound;    /* of the last request for a route */
extern uv_loop_t loop;
extern char told[200]; /* since the last check: "1: no carrier on eth1; 2: back; " */
extern unsigned reported;
extern const struct carrier_user user; /* whose events are recorded */

/* The address in a text. */
struct sockaddr_storage address_of(const char *text, uint32_t scope);

/* With `address` NULL it has none: the system then reports another kind of address, or none. */
void add(const char *name, unsigned flags, const char *address, uint32_t scope);

/* Starts to watch a system without interfaces. */
struct carrier *begin(void);

/* With a socket of the real system, which has nothing to report. */
struct carrier *begin_real(void);

/* Closes it. Fails the test if anything is left. */
void end(struct carrier *c);

/* A port that listens on this address. */
void watch(struct carrier *c, unsigned port, const char *address, uint32_t scope);

/* A link that is up, whose packets leave by `route`. */
void watch_link(struct carrier *c, const char *from, const char *to, uint32_t scope,
                const char *interface, bool bound);

/* The system reports a change. */
void report(void);

/* Fails the test unless these events were recorded since the last check. */
void check(struct carrier *c, const char *expected);
