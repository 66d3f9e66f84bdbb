/* Times in nanoseconds, limits of links, and of the threads that serve them. */
#pragma once

#include <stdint.h>

#define MILLISECONDS UINT64_C(1000000) /* in nanoseconds */
#define SECONDS (UINT64_C(1000) * MILLISECONDS)
/* The interval of heartbeats, unless router_set_heartbeats() sets another one. */
#define ROUTER_HEARTBEAT (250 * MILLISECONDS)
/* How long a link may be silent, unless router_set_heartbeats() sets another limit. A silent link brings
 * neither bytes nor acknowledgements. */
#define ROUTER_SILENCE (1 * SECONDS)
/* The smallest limit of silence that may be set: TCP needs that long to send a lost packet again. */
#define ROUTER_SILENCE_LEAST (300 * MILLISECONDS)
/* How long a neighbour may send nothing while its system still acknowledges, or reports a full receive
 * window: then its daemon is stopped, or gets no processor. The limit is at least that of silence, and at
 * least ROUTER_STALL_BEATS of the neighbour's own intervals. */
#define ROUTER_STALL (5 * SECONDS)
#define ROUTER_STALL_BEATS 3u
/* The longest frame takes less time than this on any usable link. If no frame has arrived whole after it,
 * the stream is damaged. At least the limit of silence. */
#define ROUTER_FRAME_TIME (20 * SECONDS)
#define ROUTER_HELLO_TIME (5 * SECONDS) /* how long a handshake may take */
/* After the handshake, a frame of full size probes the cable. If none of its bytes is acknowledged for this
 * long, a fault is reported. */
#define ROUTER_PROBE_TELL (2 * SECONDS)
/* The connection is given up after this time. By then Linux has tried smaller packets, if tcp_mtu_probing
 * says so. */
#define ROUTER_PROBE_TIME (8 * SECONDS)
/* How long a link that is up may wait for a due acknowledgement while the neighbour's frames arrive. The
 * neighbour hears nothing during this time, and waits for ROUTER_STALL. */
#define ROUTER_UNACKED (3 * SECONDS)
/* Memory in bytes that the control frames waiting for one link may take (a report of every node of a large
 * torus fits). When it is exceeded, the router stops reading from the links that cause these frames. If the
 * other end of the full link takes nothing for ROUTER_STALL, the link is down. */
#define ROUTER_QUEUE_MOST (8u * 1024u * 1024u)
/* A link flaps when it is lost ROUTER_FLAP_LOSSES times within ROUTER_FLAP_TIME: because of its carrier,
 * silence or missing acknowledgements. The time that it takes to notice the losses is not counted. The link
 * is then not used until it has been quiet for ROUTER_HOLD; this time doubles with each further hold, up to
 * ROUTER_HOLD_MOST, and is ROUTER_HOLD again after the link has been in use for ROUTER_HOLD_FORGET without a
 * loss. */
#define ROUTER_FLAP_LOSSES 3u
#define ROUTER_FLAP_TIME (10 * SECONDS)
#define ROUTER_HOLD (2 * SECONDS)
#define ROUTER_HOLD_MOST (64 * SECONDS)
#define ROUTER_HOLD_FORGET (60 * SECONDS)
#define ROUTER_NEVER UINT64_MAX

#define IO_THREADS_AUTO (-1) /* as many as the processors allow */
#define IO_THREADS_MOST 64u
