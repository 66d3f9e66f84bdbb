/* What a step, a message and a byte cost on links that have been measured, or not. */
#ifndef TORUSD_SCHEDULE_PREDICT_PREDICT_COSTS_H
#define TORUSD_SCHEDULE_PREDICT_PREDICT_COSTS_H

#include <stdint.h>

struct predict_costs {
    double step;             /* seconds from one end of a link to the other, for a short message */
    double message;          /* seconds that each message crossing a link costs each of its ends */
    double bytes_per_second; /* of block bytes on a link, each way, while all links are busy */
    uint32_t frame;          /* bytes of a long message that a relay waits for before it passes them
                              * on (relay.h); 0: links pass that much at once. Not measured */
    uint64_t burst;          /* bytes that a link passes at once after a pause. Not measured */
};

/* What is taken where nothing has been measured: link_mbit of nominal rate, 0 = not known. Where
 * nodes share processors (an emulated torus), each handles its messages in turn with others: so many
 * a processor, at least 1. */
struct predict_costs predict_default_costs(double link_mbit, double nodes_per_processor);

#endif
