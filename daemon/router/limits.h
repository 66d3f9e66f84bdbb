/* Times in nanoseconds, and what links may take. */
#ifndef TORUSD_ROUTER_LIMITS_H
#define TORUSD_ROUTER_LIMITS_H

#include <stdint.h>

#define MILLISECONDS UINT64_C(1000000) /* in nanoseconds */
#define SECONDS (UINT64_C(1000) * MILLISECONDS)
#define ROUTER_HEARTBEAT (1 * SECONDS)
#define ROUTER_SILENCE (5 * SECONDS)
/* On any usable link the longest frame takes less. If none arrives, the stream is damaged. */
#define ROUTER_FRAME_TIME (20 * SECONDS)
#define ROUTER_HELLO_TIME (5 * SECONDS)
/* Control frames that may wait for one link, in bytes of memory (a report of every node of a large
 * torus fits). Beyond it, nothing more is read from the links that make us queue frames there; a
 * link whose other end takes nothing at all meanwhile, for ROUTER_SILENCE, is down. */
#define ROUTER_QUEUE_MOST (8u * 1024u * 1024u)
#define ROUTER_NEVER UINT64_MAX

#endif
