/* What the CC-cube algorithm takes by its paper, for tori that it accepts: d + Q - 1 iterations,
 * and without pipelining (Q = 1) 2^(d-1) blocks times the messages that share a channel. */
#ifndef TORUSD_SCHEDULE_CCCUBE_H
#define TORUSD_SCHEDULE_CCCUBE_H

#include "daemon/schedule/torus.h"

uint32_t cccube_startups(const struct torus *t, uint32_t degree);
uint64_t cccube_transmission(const struct torus *t);
uint64_t cccube_hops(const struct torus *t); /* sum over steps of the longest leg, Q = 1 */

#endif
