/* The costs of a step, a message and a byte on links, measured or assumed. */
#pragma once

#include <stdint.h>

struct predict_costs {
    double step;             /* seconds that a short message takes from one end of a link to the
                              * other */
    double message;          /* seconds that each message on a link costs each of its ends */
    double bytes_per_second; /* block bytes on a link, each way, while all links are busy */
    uint32_t frame;          /* bytes of a long message for which a relay waits before it passes
                              * them on (relay.h); 0 if links pass that many at once. Not
                              * measured */
    uint64_t burst;          /* bytes that a link passes at once after a pause. Not measured */
};

/* The costs that are assumed if nothing has been measured. link_mbit: nominal rate of a link, 0 if
 * unknown. nodes_per_processor: at least 1; if nodes share processors (an emulated torus), a
 * processor handles the messages of all its nodes one after the other. */
struct predict_costs predict_default_costs(double link_mbit, double nodes_per_processor);
