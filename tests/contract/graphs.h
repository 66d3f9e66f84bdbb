/* Rings, arrays, complete graphs and their products by definition, for the tests of product.h and
 * its algorithms to compare with. */
#pragma once

#include "daemon/lib/schedule/product.h"

/* Asserts that two numbers are equal up to rounding. */
void assert_close(double a, double b);

/* Reads "ring:4 x array:3"; fails the test if it cannot. */
struct product graph_parse(const char *text);

/* Whether a factor has a link between two nodes. */
bool graph_linked(const struct factor *f, uint32_t a, uint32_t b);

/* Whether two nodes are adjacent: they differ in one coordinate, and are adjacent in that
 * dimension. */
bool graph_adjacent(const struct product *p, uint32_t a, uint32_t b);

/* The node that is `stride` further along a dimension, modulo its size. */
uint32_t graph_moved(const struct product *p, uint32_t node, unsigned dim, int32_t stride);
