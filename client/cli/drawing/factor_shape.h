/* The places of the nodes of one factor of a network: rings and complete graphs on a circle, lines in a row, stars
 * around their middle, trees by levels, and other graphs so that the distance of two nodes is about the hops between
 * them. The same factor always has the same shape. */
#pragma once

#include "client/cli/drawing/point.h"
#include "daemon/lib/schedule/torus.h"

/* Stores the places of the nodes from coordinate `first` on of dimension `dim` in `at` (array of `count`). The
 * distance between two nodes is about 1 or more. Returns 0, or -1 if memory is short. */
int factor_shape(const struct torus *t, unsigned dim, uint32_t first, uint32_t count,
                 struct point *at);
