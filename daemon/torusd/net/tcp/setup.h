/* The settings of the links' TCP connections. */
#pragma once

#include <uv.h>

#include "daemon/lib/net/addresses/address.h"
#include "daemon/lib/schedule/torus.h"

struct tcp_setup {
    uv_loop_t *loop;
    const struct torus *torus;
    const struct endpoint *endpoint; /* by port: dialled (+) or listened on (-); borrowed */
    const char *congestion;          /* TCP congestion control; "" = the system's */
    double link_mbit;                /* nominal rate in Mbit/s; 0 = unknown */
    unsigned hop_limit;              /* see hops.h; 0: HOPS_DEFAULT */
};
