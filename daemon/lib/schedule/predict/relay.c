#include "daemon/lib/schedule/predict/relay.h"

#include "daemon/lib/schedule/predict/predict_costs.h"

/* TCP's payload in a full packet of Ethernet, over IPv6 with time stamps; and the part of it that
 * the prefix and the head of a frame take. */
#define PACKET 1428u
#define HEAD 28u

/* A frame takes FRAME_COSTS times as long on its link as it costs a processor. On a torus of two
 * dimensions, a node whose links are all busy both ways then spends half of a processor on
 * frames. */
#define FRAME_COSTS 16
#define FRAMES_A_MESSAGE 64u /* frames of a message that make a further hop cheap */

/* The largest frame of at most `bytes` that fills whole packets, but at least one packet, and at
 * most RELAY_FRAME_MOST. */
static uint32_t whole_packets(double bytes)
{
    if (bytes >= RELAY_FRAME_MOST)
        return RELAY_FRAME_MOST;
    uint32_t packets = ((uint32_t)bytes + HEAD) / PACKET;
    return (packets > 0 ? packets : 1) * PACKET - HEAD;
}

uint32_t relay_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst)
{
    const struct predict_costs costs = predict_default_costs(link_mbit, nodes_per_processor);
    double bytes = costs.bytes_per_second * costs.message * FRAME_COSTS;

    if (link_mbit <= 0)
        return RELAY_FRAME_MOST;
    return whole_packets((double)link_burst > bytes ? (double)link_burst : bytes);
}

uint32_t relay_frame_of(uint32_t frame, uint64_t message_bytes)
{
    uint32_t many = whole_packets((double)message_bytes / FRAMES_A_MESSAGE);

    return many > frame ? many : frame;
}
