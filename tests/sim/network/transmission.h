/* The transmission of bytes from one end to the other. */
#pragma once

#include "tests/sim/network/wire.h"

/* Puts as much of the queue on the wire as the wire takes. */
void transmit(struct connection_end *end);

/* Copies bytes that leave, and releases frames that have left. */
void transmission_take_bytes(struct connection_end *end, uint8_t *out, size_t length);

/* An event that resets `object`, an end. */
void transmission_on_reset(struct sim *sim, void *object, uint64_t number);

/* Delivers bytes that could not be received at this end before. */
void transmission_hear_again(struct connection_end *end);
