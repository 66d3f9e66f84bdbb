/* Frames of pieces that carry digests, for each engine. */
#pragma once

#include "engine_fixture.h"

enum { LONG = 300, FALSE_DIGEST = 12345 };

/* Pieces 0->1 and 0->2 of `size` bytes each. Writes their bytes to `body`. */
struct frame pieces_from_0(char body[2 * LONG + 1], uint32_t size);
