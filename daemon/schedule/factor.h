/* One dimension of a multidimensional network: a ring, a linear array or a complete graph, with
 * nodes 0..n-1; distances, statuses, and its one-port complete exchange. Tori are products of
 * rings, meshes of arrays, generalized hypercubes of complete graphs (product.h). */
#ifndef TORUSD_SCHEDULE_FACTOR_H
#define TORUSD_SCHEDULE_FACTOR_H

#include <stdbool.h>
#include <stdint.h>

enum graph { GRAPH_RING, GRAPH_ARRAY, GRAPH_COMPLETE };

struct factor {
    enum graph graph;
    uint32_t nodes; /* n, at least 1 */
};

const char *graph_name(enum graph graph); /* "ring", "array", "complete" */

uint32_t factor_distance(const struct factor *f, uint32_t a, uint32_t b);
uint32_t factor_diameter(const struct factor *f);

/* The status of a node is the sum of its distances to all others. */
uint64_t factor_status(const struct factor *f, uint32_t node);
uint64_t factor_least_status(const struct factor *f);
uint64_t factor_most_status(const struct factor *f);
double factor_average_status(const struct factor *f);

/* The load on each link of a cut into halves a and b, in each direction: |a| * |b| / links. A ring
 * of 2 counts as two links, as a torus has them. */
double factor_cut(const struct factor *f);

/* All links of the dimension (a ring of 2 has two), and the links of a node with the fewest. */
uint64_t factor_links(const struct factor *f);
uint32_t factor_fewest_links(const struct factor *f);

/* Complete exchange with one send and one receive at a time, and single hops: the route of one
 * block, a hop in each of `hops` steps from `step` on. Every hop adds `stride` to the node, modulo n. */
struct walk {
    uint32_t step;
    uint32_t hops;
    int32_t stride;
};

struct walk factor_walk(const struct factor *f, uint32_t from, uint32_t to);

/* What that exchange costs: steps, and the sum over them of the most blocks on any channel. */
uint32_t factor_steps(const struct factor *f);
uint64_t factor_blocks(const struct factor *f);

#endif
