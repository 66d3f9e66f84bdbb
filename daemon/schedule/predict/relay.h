/* The frames of messages that relays pass on. A relay passes on whole frames, so each further hop
 * takes a message as long as its first frame takes on a link. Pure arithmetic. */
#ifndef TORUSD_SCHEDULE_PREDICT_RELAY_H
#define TORUSD_SCHEDULE_PREDICT_RELAY_H

#include <stdint.h>

#define RELAY_FRAME_MOST (16u * 1024u) /* bytes of blocks in a frame */

/* Bytes of blocks in a frame of a long message. On slow links a frame has one packet, so that hops
 * cost little; on faster ones more, so that processors are busy with frames for a small part of the
 * time that they take on the links, and at most RELAY_FRAME_MOST. What a link passes at once need
 * not be cut. link_mbit: nominal rate, 0 if unknown. nodes_per_processor: at least 1, see predict_costs.h.
 * link_burst: bytes that a link passes at once after a pause; 0 on a cable. */
uint32_t relay_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst);

/* The same for a message of so many bytes, where long ones have frames of `frame` bytes at least:
 * longer frames where there are many of them. */
uint32_t relay_frame_of(uint32_t frame, uint64_t message_bytes);

#endif
