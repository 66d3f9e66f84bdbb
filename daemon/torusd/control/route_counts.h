/* What torus-routed on this host has told about its routes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/routes.h"

struct route_counts {
    bool runs;  /* torus-routed is connected, and has told its state */
    bool known; /* it sends the fields below: older releases do not */
    bool forwards;
    bool problem;                 /* something keeps routes from being set */
    uint32_t hosts[ROUTE_STATES]; /* how many other hosts have such routes */
    uint64_t ways_lost, ways_gained;
    uint64_t changed; /* when a route changed last, as uv_now(); wraps around before the loop */
};
