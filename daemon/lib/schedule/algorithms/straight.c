#include "daemon/lib/schedule/algorithms/straight.h"

bool straight_fits(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->graph[i] == NULL && t->size[i] / (t->wrap[i] ? 2 : 1) > UINT16_MAX)
            return false;
    return true;
}

uint32_t straight_most_legs(const struct torus *t)
{
    uint32_t legs = 0;

    for (unsigned i = 0; i < t->dims; i++)
        legs += t->graph[i] != NULL ? t->graph[i]->diameter : 1;
    return legs;
}

uint32_t straight_route(const struct torus *t, uint32_t source, uint32_t destination, uint32_t step,
                        struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t parity = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        if (straight_has_opposite(t, i))
            parity += from[i];
    for (unsigned i = 0; i < t->dims; i++) {
        int direction = parity % 2 == 0 ? 1 : -1;
        if (t->graph[i] != NULL) {
            for (; from[i] != to[i]; count++) {
                unsigned way = graph_towards(t->graph[i], from[i], to[i]);
                legs[count] = (struct leg){
                    .step = step++, .hops = 1, .dim = (uint8_t)i, .direction = (int8_t)(way + 1)};
                from[i] = graph_neighbour(t->graph[i], from[i], way);
            }
            continue;
        }
        uint32_t hops = torus_shortest(t, i, from[i], to[i], &direction);
        if (hops > 0)
            legs[count++] = (struct leg){.step = step++,
                                         .hops = (uint16_t)hops,
                                         .dim = (uint8_t)i,
                                         .direction = (int8_t)direction};
    }
    return count;
}
