/* Who is at the other end of a cable that has no link: each node says its rank and port there, in a datagram to
 * all nodes of the interface (ff02::1), every two seconds while the port has no link. TCP cannot find that out
 * if addresses do not fit: a + port that is cabled to a + port dials what nobody has.
 *
 * Needs an interface that is known, with a link-local IPv6 address, which Linux gives to each unless it is told
 * not to. No privileges. What is heard proves nothing and is for people only. */
#ifndef TORUSD_NET_DISCOVERY_BEACON_H
#define TORUSD_NET_DISCOVERY_BEACON_H

#include <uv.h>

#include "daemon/net/tcp/tcp.h"
#include "daemon/router/router.h"

#define BEACON_PORT 7411u /* of UDP */

struct beacon;

/* All is borrowed. Returns NULL if there is no memory: then nothing is said or heard. */
struct beacon *beacon_start(uv_loop_t *loop, const struct tcp *tcp, struct router *router);
/* Freed when the loop has closed its handles; NULL does nothing. Before the router and tcp are freed. */
void beacon_stop(struct beacon *beacon);

#endif
