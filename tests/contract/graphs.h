/* Rings, arrays, complete graphs and their products, by their definition: what the tests of product.h
 * and of its algorithms compare with. */
#ifndef TORUSD_TESTS_GRAPHS_H
#define TORUSD_TESTS_GRAPHS_H

#include "daemon/schedule/product.h"

/* As good as equal. */
void assert_close(double a, double b);

/* "ring:4 x array:3"; the test fails if it cannot be read. */
struct product graph_parse(const char *text);

/* Whether two nodes of a factor have a link. */
bool graph_linked(const struct factor *f, uint32_t a, uint32_t b);

/* Two nodes are adjacent if they differ in one coordinate and are adjacent there. */
bool graph_adjacent(const struct product *p, uint32_t a, uint32_t b);

/* The node that is `stride` further in a dimension, round its end. */
uint32_t graph_moved(const struct product *p, uint32_t node, unsigned dim, int32_t stride);

#endif
