/* Sizes of the frames that relays pass on. A relay passes on whole frames, so each further hop
 * delays a message by the time that its first frame takes on a link. Pure arithmetic. */
#pragma once

#include <stdint.h>

#define RELAY_FRAME_MOST (16u * 1024u) /* bytes of blocks in a frame */

/* Bytes of blocks in a frame of a long message, at most RELAY_FRAME_MOST. On slow links a frame is
 * one packet, so that hops cost little. On faster links frames are longer, so that processors spend
 * only a small part of the time on frames that these take on the links. Frames are not shorter than
 * what a link passes at once.
 *
 * link_mbit: nominal rate, 0 if unknown. nodes_per_processor: at least 1, see predict_costs.h.
 * link_burst: bytes that a link passes at once after a pause; 0 on a cable. */
uint32_t relay_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst);

/* Bytes of blocks in a frame of a message of `message_bytes`, where frames of long messages have at
 * least `frame` bytes. Frames are longer if the message would have very many. */
uint32_t relay_frame_of(uint32_t frame, uint64_t message_bytes);
