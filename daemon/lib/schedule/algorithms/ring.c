#include "daemon/lib/schedule/algorithms/ring.h"

uint32_t ring_route(const struct ring *ring, uint32_t from, uint32_t to, int tie, struct leg *legs)
{
    uint32_t n = ring->nodes;
    uint32_t offset = (to + n - from) % n;
    int direction = 2 * offset < n ? 1 : 2 * offset > n ? -1 : tie;
    uint32_t hops = direction > 0 ? offset : n - offset;
    uint32_t step = ring->step;
    uint32_t count = 0;

    if (offset == 0)
        return 0;

    struct leg leg = {.dim = ring->dim, .direction = (int8_t)direction};

    /* Stage 1: one hop to a node of the destination's parity. */
    if (hops % 2 != 0) {
        leg.step = step;
        leg.hops = ring->stride;
        legs[count++] = leg;
    }
    step++;
    /* Two hops a step, in stage 2 or stage 3. In stage 2 even nodes send + and odd nodes -, in
     * stage 3 the other way round. */
    if ((direction > 0) != (to % 2 == 0))
        step += n / 4;
    for (hops /= 2; hops > 0; hops--) {
        leg.step = step++;
        leg.hops = (uint16_t)(2 * ring->stride);
        legs[count++] = leg;
    }
    return count;
}
