/* What one end sends, until the other end has it. */
#ifndef TORUSD_TESTS_SIM_NETWORK_TRANSMISSION_H
#define TORUSD_TESTS_SIM_NETWORK_TRANSMISSION_H

#include "tests/sim/network/wire.h"

/* Puts what is queued there on the wire, as far as it takes it. */
void transmit(struct connection_end *end);

/* Copies bytes that leave, and gives back frames that have left. */
void transmission_take_bytes(struct connection_end *end, uint8_t *out, size_t length);

/* An event: `object`, an end, is reset. */
void transmission_on_reset(struct sim *sim, void *object, uint64_t number);

/* What could not be heard at this end is heard now. */
void transmission_hear_again(struct connection_end *end);

#endif
