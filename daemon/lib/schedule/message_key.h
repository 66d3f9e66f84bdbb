/* Combined messages as keys of a tally (tally.h). A key stands for the messages that start at the
 * nodes of one class: moves (routes.h) turn the message of one node into those of the others. The
 * order of the keys is that of the steps. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

#define MESSAGE_MAX_STEP ((1u << 23) - 1) /* the highest step for which a key has room */

/* `class` may be any number below TORUS_MAX_NODES, so that the rank of a node fits as well. */
static inline uint64_t message_key(const struct torus *t, uint32_t class, const struct leg *leg)
{
    return (uint64_t)leg->step << 41 | (uint64_t) class << 21 |
           (uint64_t)torus_port(t, leg->dim, leg->direction) << 16 | leg->hops;
}

/* The parts of a key. */
static inline uint32_t message_key_step(uint64_t key)
{
    return (uint32_t)(key >> 41);
}

static inline uint32_t message_key_class(uint64_t key)
{
    return (uint32_t)(key >> 21) & (TORUS_MAX_NODES - 1);
}

static inline struct leg message_key_leg(const struct torus *t, uint64_t key)
{
    unsigned port = (unsigned)(key >> 16) & (TORUS_MAX_PORTS - 1);
    return (struct leg){.step = message_key_step(key),
                        .hops = (uint16_t)key,
                        .dim = (uint8_t)torus_port_dim(t, port),
                        .direction = (int8_t)torus_port_direction(t, port)};
}
