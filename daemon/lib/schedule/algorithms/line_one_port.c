#include "daemon/lib/schedule/algorithms/line_one_port.h"

uint32_t line_one_port_route(uint32_t k, uint8_t dim, uint32_t step, uint32_t from, uint32_t to,
                             struct leg *legs)
{
    uint32_t offset = (to + k - from) % k;
    bool forward = offset <= k / 2;
    uint32_t shifts = forward ? offset : k - offset;
    uint32_t turn = forward ? k - 1 : 0; /* the end of the line, from which the ring leads back */
    int8_t direction = forward ? 1 : -1;

    if (!forward)
        step += k / 2;
    for (uint32_t i = 0; i < shifts; i++) {
        bool back = from == turn;
        legs[i] = (struct leg){.step = step + i,
                               .hops = (uint16_t)(back ? k - 1 : 1),
                               .dim = dim,
                               .direction = (int8_t)(back ? -direction : direction)};
        from = back ? k - 1 - turn : forward ? from + 1 : from - 1;
    }
    return shifts;
}
