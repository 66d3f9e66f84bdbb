#include "pieces_fixture.h"

struct frame pieces_from_0(char body[2 * LONG + 1], uint32_t size)
{
    struct frame frame = {.streamed = true,
                          .port = MINUS,
                          .pieces = 2,
                          .piece = {0, 1},
                          .sizes = 2,
                          .size = {size, size},
                          .digests = size >= PIECE_DIGEST_LEAST ? 2 : 0,
                          .body = body};

    frame.digest[0] = letters(body, 0, 1, 0, size);
    frame.digest[1] = letters(body + size, 0, 2, 0, size);
    return frame;
}
