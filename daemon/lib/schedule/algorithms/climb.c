#include "daemon/lib/schedule/algorithms/climb.h"

int64_t climb_offset(const struct torus *t, unsigned dim, uint32_t root, uint32_t coordinate)
{
    int direction = 1;
    uint32_t hops = torus_shortest(t, dim, root, coordinate, &direction);

    return direction * (int64_t)hops;
}

int64_t climb_common(int64_t a, int64_t b)
{
    if ((a < 0) != (b < 0))
        return 0;
    return climb_length(a) < climb_length(b) ? a : b;
}

static void add_hop(struct climb *c, unsigned dim, bool plus, uint32_t step)
{
    c->legs[c->count++] = (struct leg){
        .step = c->begin + step, .hops = 1, .dim = (uint8_t)dim, .direction = plus ? 1 : -1};
}

void climb_up(struct climb *c, unsigned dim, int64_t hops, int64_t end)
{
    for (uint32_t left = climb_length(hops - end); left > 0; left--, c->depth--)
        add_hop(c, dim, hops < 0, c->deepest - c->depth);
}

void climb_down(struct climb *c, unsigned dim, int64_t start, int64_t hops)
{
    for (uint32_t left = climb_length(hops - start); left > 0; left--)
        add_hop(c, dim, hops > 0, c->deepest + ++c->depth - 1);
}
