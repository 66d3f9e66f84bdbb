/* Finds out which node is at the other end of a cable that has no link. While a port has no link, the node
 * sends its rank and port every two seconds in a datagram to all nodes of the interface (ff02::1). TCP cannot
 * find that out if the addresses do not match: a + port that is cabled to a + port dials an address that no
 * host has.
 *
 * Needs a known interface with a link-local IPv6 address, which no other port of the node uses; Linux gives one
 * to each interface by default. Needs no privileges. Beacons prove nothing, and serve diagnosis only. */
#pragma once

#include <uv.h>

#include "daemon/torusd/net/tcp.h"
#include "daemon/torusd/router/router.h"

#define BEACON_PORT 7411u /* of UDP */

struct beacon;

/* All arguments are borrowed. Returns NULL if there is no memory: then no beacons are sent or received. */
struct beacon *beacon_start(uv_loop_t *loop, const struct tcp *tcp, struct router *router);
/* Stops the beacons, and frees them when the loop has closed their handles; NULL does nothing. Call it
 * before the router and `tcp` are freed. */
void beacon_stop(struct beacon *beacon);
