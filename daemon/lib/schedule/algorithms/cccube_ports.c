/* CC-cube with k ports: a node sends at most k messages at a time, and receives at most k. One port
 * and all ports are the models of section 2 of the paper (cccube.c), which its title extends to k.
 *
 * If no channel is shared, as on hypercubes, a stage in which a iterations are under way takes
 * ceil(a/k) steps. For a = min(d, Q) that is 2 * (ceil(1/k) + ... + ceil((a-1)/k)) + (d + Q + 1 - 2a)
 * * ceil(a/k) steps of 2^(d-1)/Q blocks. With one port pipelining saves nothing: d * Q steps. */
#include "daemon/lib/schedule/algorithms/cccube.h"

#define STARTUPS                                                                                   \
    "d + Q - 1 stages; a stage of a iterations: ceil(a/k) steps on rings of up to 4 and arrays "   \
    "of "                                                                                          \
    "2, more on others"
#define TRANSMISSION "Q divides N/2: N/(2Q) * startups"

#define BASE(k, model)                                                                             \
    static const struct algorithm base_##k = {                                                     \
        .methods = &family_methods,                                                                \
        .name = "cccube-k" #k,                                                                     \
        .summary = CCCUBE_SUMMARY ", on " #k " of the ports at a time",                            \
        .accepts_text = CCCUBE_ACCEPTS,                                                            \
        .any_graph = true,                                                                         \
        .startups = STARTUPS,                                                                      \
        .transmission = TRANSMISSION,                                                              \
        .source = CCCUBE_SOURCE,                                                                   \
        .port_model = model,                                                                       \
        .ports = k,                                                                                \
        .segments = 1,                                                                             \
        .accepts = cccube_accepts,                                                                 \
        .max_legs = cccube_max_legs,                                                               \
        .period = cccube_period,                                                                   \
        .xor_period = cccube_xor_period,                                                           \
        .family = &family_cccube_ports[(k)-1],                                                     \
        .degree = 1,                                                                               \
    };

#define FAMILY(k)                                                                                  \
    {                                                                                              \
        .base = &base_##k, .best = "cccube-k" #k "-best",                                          \
        .summary = CCCUBE_SUMMARY ", on " #k " of the ports at a time", .startups = STARTUPS,      \
        .transmission = TRANSMISSION, .most = cccube_most, .route = cccube_route,                  \
        .counts = cccube_counts, .messages = cccube_messages,                                      \
    }

BASE(1, PORT_MODEL_ONE)
BASE(2, PORT_MODEL_ALL)
BASE(3, PORT_MODEL_ALL)
BASE(4, PORT_MODEL_ALL)
BASE(5, PORT_MODEL_ALL)
BASE(6, PORT_MODEL_ALL)
BASE(7, PORT_MODEL_ALL)
BASE(8, PORT_MODEL_ALL)

const struct family family_cccube_ports[CCCUBE_PORTS_MOST] = {
    FAMILY(1), FAMILY(2), FAMILY(3), FAMILY(4), FAMILY(5), FAMILY(6), FAMILY(7), FAMILY(8)};
