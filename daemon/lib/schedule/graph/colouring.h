/* Edge colouring: gives each edge a number, so that no two edges of a node have the same. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Colours the edges, two nodes each (array of 2 * count), of a simple graph. Writes the colour of
 * each edge (array of count), and to *colours how many colours there are: at most one more than
 * the most edges of a node, `most`. Misra, Gries: A Constructive Proof of Vizing's Theorem (1992).
 * Returns 0, or -1 without memory. */
int colouring_find(uint32_t nodes, const uint32_t *edge, size_t count, unsigned most,
                   uint8_t *colour, unsigned *colours);
