/* Frames of pieces that carry digests, for each engine. */
#ifndef TORUSD_TESTS_UNIT_PIECES_FIXTURE_H
#define TORUSD_TESTS_UNIT_PIECES_FIXTURE_H

#include "engine_fixture.h"

enum { LONG = 300, FALSE_DIGEST = 12345 };

/* Pieces 0->1 and 0->2 of `size` bytes each. Writes their bytes to `body`. */
struct frame pieces_from_0(char body[2 * LONG + 1], uint32_t size);

#endif
