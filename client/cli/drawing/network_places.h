/* The places of the nodes of a network with factors that are neither rings nor lines. A frame shows the last two
 * factors of more than one node: a copy of the last one for each node of the one before it, which lie as the nodes of
 * that factor do. Further factors have a frame for each of their nodes. */
#pragma once

#include "client/cli/drawing/drawing_part.h"
#include "client/cli/drawing/point.h"

struct network_places {
    bool used;        /* false: the network has only rings and lines; nothing else is set */
    unsigned factors; /* in a frame, up to 2 */
    unsigned dim[2];  /* of the last one, and of the one before it */
    /* By factor and coordinate from the first one that is shown. A node is at the sum of the places in the factors,
     * counted from the upper left node of its frame. */
    struct point *at[2];
    double width,
        height; /* from the leftmost node of a frame to the rightmost one, and from the highest to the lowest */
};

/* Finds the places of all nodes. Returns 0 with *p, which the caller passes to network_places_free(), or -1 if memory is
 * short. */
int network_places_make(struct network_places *p, const struct torus *t,
                        const struct drawing_part *part);
void network_places_free(struct network_places *p);

/* The place of a node that is shown, in its frame. */
struct point network_place(const struct network_places *p, const struct torus *t,
                           const struct drawing_part *part, uint32_t node);
