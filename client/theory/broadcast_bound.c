#include "client/theory/broadcast_bound.h"

uint32_t broadcast_bound_one_to_all(const struct product *p)
{
    return product_diameter(p);
}

uint32_t broadcast_bound_all_to_all(const struct product *p)
{
    uint32_t links = 0, diameter = product_diameter(p);

    for (unsigned i = 0; i < p->dims; i++)
        links += factor_fewest_links(&p->factor[i]);
    if (links == 0)
        return 0;
    uint32_t received = (p->nodes - 1 + links - 1) / links;
    return received > diameter ? received : diameter;
}
