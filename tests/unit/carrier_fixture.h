/* The interfaces, addresses and routes of a system as a test says, and what is told of its carriers. */
#ifndef TORUSD_TESTS_UNIT_CARRIER_FIXTURE_H
#define TORUSD_TESTS_UNIT_CARRIER_FIXTURE_H

#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/net/carrier/carrier.h"

#define MOST 8u

enum {
    LOWER_UP = 0x10000,
    WORKS = IFF_UP | LOWER_UP,
    CUT = IFF_UP,
    LOOPBACK = IFF_UP | IFF_LOOPBACK
};

extern struct ifaddrs entry[MOST];
extern struct sockaddr_storage addresses[MOST];
extern unsigned entries, asked; /* interfaces with an address; how often they were asked for */
extern bool no_netlink, fails;  /* there is none; no interface can be read */
extern int reports;             /* the system's end of the socket */
extern unsigned overruns;       /* reports that are lost next */
extern unsigned number[MOST];   /* of each entry's interface */
extern unsigned route;          /* to any peer: the number of an interface, 0: there is none */
extern unsigned route_bound;    /* what was last asked for */
extern uv_loop_t loop;
extern char told[200]; /* since the last check: "1: no carrier on eth1; 2: back; " */
extern unsigned reported;
extern const struct carrier_user user; /* whose events are told */

/* The address in a text. */
struct sockaddr_storage address_of(const char *text, uint32_t scope);

/* `address` NULL: it has none, which the system says with another kind of address, or with none. */
void add(const char *name, unsigned flags, const char *address, uint32_t scope);

/* A system without interfaces, which is watched. */
struct carrier *begin(void);

/* Closes it; nothing may be left. */
void end(struct carrier *c);

/* A port that listens on this address. */
void watch(struct carrier *c, unsigned port, const char *address, uint32_t scope);

/* A link that is up, whose packets leave by `route`. */
void watch_link(struct carrier *c, const char *from, const char *to, uint32_t scope,
                const char *interface, bool bound);

/* The system says that something has changed. */
void report(void);

/* Fails the test unless this has been told since the last check. */
void check(struct carrier *c, const char *expected);

#endif
