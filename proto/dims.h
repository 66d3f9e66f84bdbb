/* The sizes of a network's dimensions, from the text that a daemon sends: "4x8m", or with factors other
 * than rings and lines "4 x complete:3 x tree:2^3 x graph:10:0123456789abcdef". For programs that do not
 * link the schedules; daemon/lib/schedule/torus.h has the whole network. */
#pragma once

#include <stdint.h>

#define DIMS_TEXT_SIZE 320 /* room for any text of dimensions */

/* Writes the sizes of up to `most` dimensions. Returns how many there are; 0 if the text is something
 * else, or has more dimensions, or more than UINT32_MAX nodes. */
unsigned dims_sizes(const char *text, uint32_t *size, unsigned most);
