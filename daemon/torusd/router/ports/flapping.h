/* Holds links that flap (limits.h): they are not used until they have been quiet for a while. */
#pragma once

#include <stdint.h>

struct port;
struct router;

/* Counts a loss: the cable of a port has failed, whether its link was up or not, and this node has noticed it
 * `noticing` nanoseconds later. To be called before the link is closed. */
void flapping_lost(struct router *r, unsigned port, uint64_t noticing);

/* Ends the hold of a link that has been quiet for long enough. */
void flapping_release(struct router *r, unsigned port, uint64_t now);

/* When flapping_release() must be called next, in nanoseconds of router_now(); or ROUTER_NEVER. */
uint64_t flapping_deadline(const struct port *port);
