#include "client/cli/schedule_files/straight_leg.h"

#include <inttypes.h>

int straight_dimension(const struct torus *t, uint32_t from, uint32_t to, unsigned *dim,
                       struct error *e)
{
    uint32_t here[TORUS_MAX_DIMS], there[TORUS_MAX_DIMS];
    unsigned differ = 0;
    char dims[TORUS_TEXT_SIZE];

    torus_coordinates(t, from, here);
    torus_coordinates(t, to, there);
    for (unsigned i = 0; i < t->dims; i++) {
        if (here[i] == there[i])
            continue;
        *dim = i;
        differ++;
    }
    if (differ == 1)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "node %" PRIu32 " is not in a straight line from node %" PRIu32 " on %s", to,
                     from, torus_format(t, dims));
}

int straight_leg(const struct torus *t, uint32_t from, uint32_t to, uint32_t choice,
                 struct leg *leg, struct error *e)
{
    uint32_t here[TORUS_MAX_DIMS], there[TORUS_MAX_DIMS], hops = 1;
    int direction = choice % 2 == 0 ? 1 : -1;
    unsigned dim;
    char dims[TORUS_TEXT_SIZE];

    if (straight_dimension(t, from, to, &dim, e) != 0)
        return -1;
    torus_coordinates(t, from, here);
    torus_coordinates(t, to, there);
    if (t->graph[dim] == NULL)
        hops = torus_shortest(t, dim, here[dim], there[dim], &direction);
    else if (graph_distance(t->graph[dim], here[dim], there[dim]) == 1)
        direction = (int)graph_towards(t->graph[dim], here[dim], there[dim]) + 1;
    else
        return error_set(e, ERROR_REFUSED,
                         "node %" PRIu32 " is not a neighbour of node %" PRIu32 " on %s", to, from,
                         torus_format(t, dims));
    if (hops > UINT16_MAX)
        return error_set(e, ERROR_REFUSED, "%" PRIu32 " hops are more than a leg can have", hops);
    *leg =
        (struct leg){.hops = (uint16_t)hops, .dim = (uint8_t)dim, .direction = (int8_t)direction};
    return 0;
}
