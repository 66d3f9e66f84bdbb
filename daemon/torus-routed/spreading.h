/* To which hosts connections take all paths that are equally short, and to which the chosen one only
 * (ip_routes_choose()).
 *
 * The kernel gives each connection one of several paths by a hash of its addresses and ports. With few connections,
 * that is luck: on a ring of four with one connection between each pair of opposite hosts, two of them often share a
 * cable while another is idle. So all connections to a host take the chosen path, which no other pair as far apart
 * needs, until this host sends much over two or more connections to that host at once. Then they are spread, and a
 * single pair of hosts uses all paths. */
#pragma once

#include "daemon/torus-routed/host_addresses.h"

#define SPREADING_MS 500u      /* between two looks */
#define SPREADING_BYTES 65536u /* least bytes between two looks of a connection that counts */
#define SPREADING_LOOKS                                                                            \
    20u /* without two such connections, after which connections are not spread any more */

struct spreading_connection {
    uint64_t cookie, sent;
};

struct spreading {
    bool *spread;    /* by node */
    uint8_t *calm;   /* by node: looks since it last had two connections that count */
    uint32_t *count; /* by node: such connections at this look */
    uint32_t nodes;
    struct spreading_connection *before, *now; /* at the last look, by cookie; and at this one */
    size_t befores, nows, room, before_room;
    uint64_t passed[TORUS_MAX_PORTS]; /* by port: what its interface had sent at the last look */
    bool looked;  /* at the last look: then it is known what connections had sent before */
    bool unknown; /* the kernel cannot tell: connections are always spread */
};

/* Returns 0, or -1 if there is no memory. The caller calls spreading_free(). */
int spreading_init(struct spreading *s, uint32_t nodes);
void spreading_free(struct spreading *s);

/* Looks at the connections of this host; `sent`: by port, what its interface has sent since it exists, 0 without one;
 * NULL: not known. The kernel searches a table for all connections of the machine, which takes it about a millisecond.
 * So connections are only listed if the cables have sent enough since the last look for two that count. Returns whether
 * `spread` has changed. */
bool spreading_look(struct spreading *s, const struct host_addresses *hosts,
                    const uint64_t sent[TORUS_MAX_PORTS]);
