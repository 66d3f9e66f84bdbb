/* Links that flap (limits.h) are kept out until they have been quiet for a while. */
#ifndef TORUSD_ROUTER_PORTS_FLAPPING_H
#define TORUSD_ROUTER_PORTS_FLAPPING_H

#include <stdint.h>

struct port;
struct router;

/* The cable of a port has failed, whether a link was up or not, and it took `noticing` nanoseconds to notice.
 * Call it before the link is closed. */
void flapping_lost(struct router *r, unsigned port, uint64_t noticing);

/* Uses a link again that has been quiet for long enough. */
void flapping_release(struct router *r, unsigned port, uint64_t now);

/* When flapping_release() must be called next, or ROUTER_NEVER. */
uint64_t flapping_deadline(const struct port *port);

#endif
