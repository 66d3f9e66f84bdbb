#include "daemon/lib/schedule/algorithms/ring_one_port.h"

uint32_t ring_one_port_route(const struct ring *ring, uint32_t from, uint32_t to, uint32_t last,
                             struct leg *legs)
{
    uint32_t n = ring->nodes;
    uint32_t offset = (to + n - from) % n;
    uint32_t count = 0;

    if (offset == 0)
        return 0;
    /* On a ring of two both ways are equally long. Both nodes take +, so that both do the same. */
    if (n == 2) {
        legs[0] = (struct leg){
            .step = ring->step, .hops = ring->stride, .dim = ring->dim, .direction = 1};
        return 1;
    }

    /* Odd nodes send the block for their exact opposite +, even nodes -. */
    bool even = from % 2 == 0;
    bool plus = 2 * offset < n || (2 * offset == n && !even);
    uint32_t hops = plus ? offset : n - offset;
    struct leg leg = {.dim = ring->dim, .direction = plus ? 1 : -1};

    /* Even nodes carry all blocks that go +, odd nodes all that go -: the first swap hands them
     * over. */
    if (plus != even) {
        leg.step = ring->step;
        leg.hops = ring->stride;
        legs[count++] = leg;
        hops--;
    }
    for (uint32_t i = 0; i < hops / 2; i++) {
        leg.step = ring->step + 1 + i;
        leg.hops = (uint16_t)(2 * ring->stride);
        legs[count++] = leg;
    }
    /* The last swap: blocks for the carrier's next neighbour. */
    if (hops % 2 != 0) {
        leg.step = last;
        leg.hops = ring->stride;
        legs[count++] = leg;
    }
    return count;
}
