/* The classes of links that belong to the same factor (factoring.h). */
#pragma once

#include "daemon/lib/cabling/grid.h"
#include "daemon/lib/cabling/network.h"

/* A link, or several links between the same two nodes. */
struct classed_link {
    uint32_t node[2];
    uint8_t count;
    unsigned class;
};

struct link_classes {
    struct classed_link *link;
    uint32_t links;
    unsigned classes; /* at most GRID_FACTORS_MOST; if there are more, all links are in one class */
};

/* Returns 0, or -1 with *e and nothing to free. The nodes that have links must be connected. */
int link_classes_find(struct link_classes *c, const struct network *n, struct error *e);
void link_classes_free(struct link_classes *c);
