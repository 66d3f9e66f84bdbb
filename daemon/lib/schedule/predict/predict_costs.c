#include "daemon/lib/schedule/predict/predict_costs.h"

#include <stdbool.h>

#define UNKNOWN_MBIT 1000.0
/* Seconds of a processor for a message, as measured on tori of 16 to 64 nodes; and seconds of a
 * step between machines, and between processes of one machine. */
#define MESSAGE 10e-6
#define LONG_STEP 40e-6
#define SHORT_STEP 10e-6
/* The part of a nominal rate that blocks get: 1448 of 1514 bytes, after the headers of TCP, IP and
 * Ethernet. */
#define GOODPUT 0.956

struct predict_costs predict_default_costs(double link_mbit, double nodes_per_processor)
{
    double mbit = link_mbit > 0 ? link_mbit : UNKNOWN_MBIT;
    bool shared = nodes_per_processor > 1;

    return (struct predict_costs){.step = shared ? SHORT_STEP : LONG_STEP,
                                  .message = MESSAGE * (shared ? nodes_per_processor : 1),
                                  .bytes_per_second = mbit * 1e6 / 8 * GOODPUT};
}
