/* Times in nanoseconds, and what links may take. */
#ifndef TORUSD_ROUTER_INTERFACE_LIMITS_H
#define TORUSD_ROUTER_INTERFACE_LIMITS_H

#include <stdint.h>

#define MILLISECONDS UINT64_C(1000000) /* in nanoseconds */
#define SECONDS (UINT64_C(1000) * MILLISECONDS)
/* Of heartbeats, as long as nothing else is set (router_set_heartbeats()): the interval, */
#define ROUTER_HEARTBEAT (250 * MILLISECONDS)
/* and how long a link may be silent: nothing comes, and nothing that was sent is acknowledged. */
#define ROUTER_SILENCE (1 * SECONDS)
/* The least of these limits: TCP needs that long to send a lost packet again. */
#define ROUTER_SILENCE_LEAST (300 * MILLISECONDS)
/* How long a neighbour may say nothing whose system takes what is sent to it, or has no room for more:
 * its daemon is stopped, or has no processor. No less than the limit of silence, and than so many of
 * the neighbour's own intervals. */
#define ROUTER_STALL (5 * SECONDS)
#define ROUTER_STALL_BEATS 3u
/* On any usable link the longest frame takes less. If none arrives, the stream is damaged.
 * No less than the limit of silence. */
#define ROUTER_FRAME_TIME (20 * SECONDS)
#define ROUTER_HELLO_TIME (5 * SECONDS) /* until a connection has proved who it is */
/* Then, without anything of a frame of full size being acknowledged: until that is told, */
#define ROUTER_PROBE_TELL (2 * SECONDS)
/* and until the connection is given up. Linux, if it is told to (tcp_mtu_probing), has tried smaller packets
 * by then. */
#define ROUTER_PROBE_TIME (8 * SECONDS)
/* How long a link that is up, whose neighbour is heard, may go without an acknowledgement that is due. The
 * neighbour, which hears nothing meanwhile, waits for ROUTER_STALL. */
#define ROUTER_UNACKED (3 * SECONDS)
/* Control frames that may wait for one link, in bytes of memory (a report of every node of a large
 * torus fits). Beyond it, nothing more is read from the links that make us queue frames there; a
 * link whose other end takes nothing at all meanwhile, for ROUTER_STALL, is down. */
#define ROUTER_QUEUE_MOST (8u * 1024u * 1024u)
/* A link flaps that is lost, by its carrier, by silence or because nothing is acknowledged, so often
 * within this time. The time that it takes to notice a loss does not count. Then it is kept out until
 * it has been quiet for a while: at first ROUTER_HOLD, each further time twice as long as before; from
 * ROUTER_HOLD on again when it has been used for ROUTER_HOLD_FORGET without a loss. */
#define ROUTER_FLAP_LOSSES 3u
#define ROUTER_FLAP_TIME (10 * SECONDS)
#define ROUTER_HOLD (2 * SECONDS)
#define ROUTER_HOLD_MOST (64 * SECONDS)
#define ROUTER_HOLD_FORGET (60 * SECONDS)
#define ROUTER_NEVER UINT64_MAX

#endif
