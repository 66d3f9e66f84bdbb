#include "daemon/schedule/algorithms/product_legs.h"

uint32_t product_legs(const struct torus *t, enum product_algorithm a, uint32_t source,
                      uint32_t destination, struct leg *legs)
{
    struct product p = product_of_torus(t);
    struct product_walk walks[PRODUCT_MAX_DIMS];
    unsigned count = product_route(&p, a, source, destination, walks);
    uint32_t hops = 0;

    for (unsigned i = 0; i < count; i++)
        for (uint32_t hop = 0; hop < walks[i].walk.hops; hop++)
            legs[hops++] = (struct leg){.step = walks[i].walk.step + hop,
                                        .hops = 1,
                                        .dim = (uint8_t)walks[i].dim,
                                        .direction = (int8_t)walks[i].walk.stride};
    return hops;
}

uint32_t product_legs_most(const struct torus *t)
{
    struct product p = product_of_torus(t);
    return product_diameter(&p);
}
